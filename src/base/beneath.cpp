// SPDX-License-Identifier: Apache-2.0
#include "base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace ingot {

namespace {

// O_NONBLOCK: a FIFO must not hang the open; it means nothing for regular files.
constexpr int read_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

BeneathResult failed(int error) {
    return {-1, error, error == ELOOP || error == EXDEV};
}

} // namespace

BeneathResult open_beneath_by_kernel(int folder, const std::string& relative) {
    open_how how{};
    how.flags = static_cast<uint64_t>(read_flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    constexpr int attempts = 32; // EAGAIN: something was renamed meanwhile
    for (int i = 0; i < attempts; ++i) {
        long r = ::syscall(SYS_openat2, folder, relative.c_str(), &how, sizeof(how));
        if (r >= 0) {
            return {static_cast<int>(r), 0, false};
        }
        if (errno != EAGAIN && errno != EINTR) {
            break;
        }
    }
    return failed(errno);
}

BeneathResult open_beneath_by_component(int folder, const std::string& relative) {
    int current = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
    size_t begin = 0;
    while (current >= 0) {
        size_t end = relative.find('/', begin);
        bool last = end == std::string::npos;
        std::string part = relative.substr(begin, last ? end : end - begin);
        begin = end + 1;
        if (part.empty() && !last) {
            continue;
        }
        // O_PATH opens a link itself, whereas O_DIRECTORY would report it as "not a directory".
        int flags = last ? read_flags : O_PATH | O_CLOEXEC | O_NOFOLLOW;
        int next = ::openat(current, part.empty() ? "." : part.c_str(), flags);
        int error = errno;
        ::close(current);
        if (next < 0 || last) {
            return next < 0 ? failed(error) : BeneathResult{next, 0, false};
        }
        struct stat info {};
        if (::fstat(next, &info) != 0 || S_ISLNK(info.st_mode)) {
            ::close(next);
            return failed(ELOOP);
        }
        current = next;
    }
    return failed(errno);
}

} // namespace ingot
