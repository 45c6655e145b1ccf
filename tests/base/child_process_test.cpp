// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/reload_request.h"
#include "base/socket.h"
#include "error_of.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

namespace ingot {
namespace {

using test::error_of;

int wait_for(ChildProcess& child) {
    while (!child.exit_code()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *child.exit_code();
}

ChildCommand shell(const std::string& script) {
    return {{"/bin/sh", "-c", script}, {}, {}};
}

TEST(ChildProcess, exit_codes_and_signals_are_told_apart) {
    ChildProcess seven = ChildProcess::start(shell("exit 7"));
    EXPECT_EQ(wait_for(seven), 7);
    ChildProcess killed = ChildProcess::start(shell("kill -9 $$"));
    EXPECT_EQ(wait_for(killed), 128 + SIGKILL);
    ChildProcess waits = ChildProcess::start({{"/bin/sleep", "1000"}, {}, {}});
    EXPECT_FALSE(waits.exit_code());
    waits.send(SIGTERM);
    EXPECT_EQ(wait_for(waits), 128 + SIGTERM);
    waits.send(SIGTERM); // nobody is hit
}

TEST(ChildProcess, the_environment_is_added_to_and_replaced) {
    TemporaryFolder folder;
    std::string out = folder.path() + "/out";
    setenv("INGOT_TEST_OLD", "old", 1);
    ChildCommand command = shell("echo $INGOT_TEST_OLD $INGOT_TEST_NEW $PATH > " + out);
    command.environment = {{"INGOT_TEST_OLD", "replaced"}, {"INGOT_TEST_NEW", "new"}};
    ChildProcess child = ChildProcess::start(command);
    EXPECT_EQ(wait_for(child), 0);
    EXPECT_EQ(read_text_file(out), str("replaced new ", std::getenv("PATH"), "\n"));
    unsetenv("INGOT_TEST_OLD");
}

TEST(ChildProcess, it_is_in_a_group_of_its_own_and_on_the_cores_it_was_given) {
    TemporaryFolder folder;
    std::string out = folder.path() + "/out";
    int last = usable_cpus().back();
    ChildCommand command =
        shell(str("grep Cpus_allowed_list /proc/self/status > ", out, "; kill -INT 0"));
    command.cpus = {last};
    ChildProcess child = ChildProcess::start(command);
    EXPECT_EQ(wait_for(child), 128 + SIGINT); // which did not reach this process
    EXPECT_EQ(read_text_file(out), str("Cpus_allowed_list:\t", last, "\n"));
}

TEST(ChildProcess, it_ends_with_the_one_who_started_it) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    // The grandchild holds the pipe's end as long as it lives.
    pid_t middle = fork();
    if (middle == 0) {
        close(ends[0]);
        ChildProcess child = ChildProcess::start({{"/bin/sleep", "1000"}, {}, {}});
        _exit(child.id() > 0 ? 0 : 1); // without the destructor, as when it is killed
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

TEST(ChildProcess, a_program_that_cannot_start_is_named) {
    EXPECT_EQ(error_of([] {
                  ChildProcess::start({{"/no/such/program"}, {}, {}});
              }),
              "cannot start '/no/such/program': No such file or directory");
    EXPECT_EQ(error_of([] {
                  ChildProcess::start({{"/etc"}, {}, {}});
              }),
              "cannot start '/etc': Permission denied");
    EXPECT_EQ(find_program("sh").substr(find_program("sh").rfind('/')), "/sh");
    EXPECT_EQ(find_program("no-such-program"), "");
    EXPECT_EQ(find_program("/no/such/program"), "");
}

TEST(ReloadRequest, each_signal_is_taken_once) {
    watch_reload_requests();
    EXPECT_FALSE(take_reload_request());
    std::raise(SIGUSR1);
    EXPECT_TRUE(take_reload_request());
    EXPECT_FALSE(take_reload_request());
    std::signal(SIGUSR1, SIG_DFL);
}

/// Listens, answers one connection with what `reply` makes of the question's first part, and
/// closes.
template <class Reply>
std::thread answer_once(int listener, Reply reply) {
    return std::thread([listener, reply] {
        int peer = accept(listener, nullptr, nullptr);
        std::array<char, 64> text{};
        ssize_t n = recv(peer, text.data(), text.size(), 0);
        std::string said =
            reply(std::string(text.data(), static_cast<size_t>(std::max<ssize_t>(n, 0))));
        send(peer, said.data(), said.size(), MSG_NOSIGNAL);
        close(peer);
    });
}

TEST(Socket, a_question_gets_its_answer_over_tcp_and_a_path) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1; // as servers do
    ASSERT_EQ(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(listen(listener, 4), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
    std::string port = str(ntohs(at.sin_port));
    std::string longer(100000, 'x');
    std::thread server = answer_once(listener, [&](const std::string& q) { return q + longer; });
    EXPECT_EQ(exchange_tcp("localhost", port, "hello", 10), "hello" + longer);
    server.join();
    EXPECT_FALSE(port_is_free("127.0.0.1", ntohs(at.sin_port)));
    EXPECT_EQ(error_of([&] { exchange_tcp("127.0.0.1", port, "hello", 0.05); }),
              str("127.0.0.1:", port, ": no answer in time"));
    close(listener);
    EXPECT_TRUE(port_is_free("127.0.0.1", ntohs(at.sin_port)));
    EXPECT_EQ(error_of([&] { exchange_tcp("127.0.0.1", port, "hello", 10); }),
              str("127.0.0.1:", port, ": no connection: Connection refused"));
    TemporaryFolder folder;
    std::string path = folder.path() + "/socket";
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un named{};
    named.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), std::begin(named.sun_path));
    ASSERT_EQ(bind(local, reinterpret_cast<sockaddr*>(&named), sizeof named), 0);
    ASSERT_EQ(listen(local, 1), 0);
    std::thread other = answer_once(local, [](const std::string& q) { return "got " + q; });
    EXPECT_EQ(exchange_local(path, "this", 10), "got this");
    other.join();
    close(local);
    EXPECT_NE(error_of([] {
                  exchange_local(std::string(200, 'p'), "", 1);
              }).find("a socket's path has at most 107 characters"),
              std::string::npos);
}

} // namespace
} // namespace ingot
