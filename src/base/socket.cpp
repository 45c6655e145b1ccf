// SPDX-License-Identifier: Apache-2.0
#include "base/socket.h"

#include "base/error.h"
#include "base/interrupt.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

namespace ingot {

namespace {

using Clock = std::chrono::steady_clock;

/// A descriptor that does not block, the address for messages, and when to give up.
class Connection {
public:
    Connection(std::string name, double seconds)
        : name_(std::move(name)), end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                          std::chrono::duration<double>(seconds))) {
    }
    ~Connection() { close(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void connect(int family, const sockaddr* address, socklen_t size) {
        descriptor_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check(descriptor_ >= 0, "a socket cannot be made");
        if (::connect(descriptor_, address, size) == 0) {
            return;
        }
        check(errno == EINPROGRESS || errno == EINTR, "no connection");
        wait(POLLOUT);
        int problem = 0;
        socklen_t length = sizeof problem;
        ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &problem, &length);
        errno = problem;
        check(problem == 0, "no connection");
    }

    void send(std::string_view text) {
        while (!text.empty()) {
            ssize_t n = ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                wait(POLLOUT);
                continue;
            }
            check(n > 0, "sending fails");
            text.remove_prefix(static_cast<size_t>(n));
        }
    }

    std::string receive(size_t limit) {
        std::string out;
        std::array<char, 4096> part{};
        while (out.size() < limit) {
            ssize_t n = ::recv(descriptor_, part.data(), part.size(), 0);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                wait(POLLIN);
                continue;
            }
            check(n >= 0, "receiving fails");
            if (n == 0) {
                break;
            }
            out.append(part.data(), static_cast<size_t>(n));
        }
        return out;
    }

    void close() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
        descriptor_ = -1;
    }

private:
    void check(bool good, std::string_view what) const {
        require(good, ErrorCode::Io, name_, ": ", what, ": ", std::strerror(errno));
    }

    void wait(short event) const {
        for (;;) {
            check_interrupt();
            auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
            require(left.count() > 0, ErrorCode::Io, name_, ": no answer in time");
            pollfd one{descriptor_, event, 0};
            constexpr int64_t step = 100;
            if (::poll(&one, 1, static_cast<int>(std::min<int64_t>(left.count(), step))) > 0) {
                return;
            }
        }
    }

    std::string name_;
    Clock::time_point end_;
    int descriptor_ = -1;
};

} // namespace

std::string exchange_tcp(const std::string& host, const std::string& port,
                         std::string_view question, double seconds, size_t limit) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    int problem = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    require(problem == 0, ErrorCode::Io, host, ':', port, ": ", ::gai_strerror(problem));
    std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
    for (addrinfo* one = found;; one = one->ai_next) {
        Connection c(str(host, ':', port), seconds);
        try {
            c.connect(one->ai_family, one->ai_addr, one->ai_addrlen);
        } catch (const Error&) {
            if (one->ai_next == nullptr) {
                throw;
            }
            continue; // a name may have addresses that nobody listens on
        }
        c.send(question);
        return c.receive(limit);
    }
}

std::string exchange_local(const std::string& path, std::string_view question, double seconds,
                           size_t limit) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    require(path.size() < sizeof address.sun_path, ErrorCode::InvalidArgument, path,
            ": a socket's path has at most ", sizeof address.sun_path - 1, " characters");
    std::copy(path.begin(), path.end(), std::begin(address.sun_path));
    Connection c(path, seconds);
    c.connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    c.send(question);
    return c.receive(limit);
}

bool port_is_free(const std::string& address, uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
        return true; // another address family: bind() will report it
    }
    int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1; // as servers do: a connection that is still closing is no obstacle
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool free = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                ::listen(descriptor, 1) == 0;
    ::close(descriptor);
    return free;
}

} // namespace ingot
