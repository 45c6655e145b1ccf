// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include "base/error.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ingot {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) {
        out.push_back(text.data());
    }
    out.push_back(nullptr);
    return out;
}

std::vector<std::string>
environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
    std::vector<std::string> out;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view text = *entry;
        bool replaced = false;
        for (const auto& [name, value] : added) {
            replaced = replaced || text.substr(0, text.find('=')) == name;
        }
        if (!replaced) {
            out.emplace_back(text);
        }
    }
    for (const auto& [name, value] : added) {
        out.push_back(str(name, '=', value));
    }
    return out;
}

struct Prepared {
    std::vector<char*> arguments;
    std::vector<char*> environment;
    cpu_set_t cpus;
    bool has_cpus = false;
    pid_t parent = 0;
    int report = -1; // gets errno when the program cannot be executed
};

/// In the child, where nothing may be allocated.
[[noreturn]] void become(const Prepared& p) noexcept {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != p.parent) { // it ended before the line above
        _exit(1);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        std::signal(s, SIG_DFL);
    }
    if (p.has_cpus) {
        sched_setaffinity(0, sizeof p.cpus, &p.cpus);
    }
    int input = open("/dev/null", O_RDONLY);
    dup2(input, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execve(p.arguments[0], p.arguments.data(), p.environment.data());
    int problem = errno;
    ssize_t told = write(p.report, &problem, sizeof problem);
    _exit(told == sizeof problem ? 127 : 126);
}

} // namespace

ChildProcess ChildProcess::start(const ChildCommand& command) {
    std::vector<std::string> arguments = command.arguments;
    std::vector<std::string> environment = environment_with(command.environment);
    Prepared p;
    p.arguments = pointers(arguments);
    p.environment = pointers(environment);
    CPU_ZERO(&p.cpus);
    for (int cpu : command.cpus) {
        CPU_SET(static_cast<size_t>(cpu), &p.cpus);
        p.has_cpus = true;
    }
    p.parent = getpid();
    std::array<int, 2> ends{};
    require(pipe2(ends.data(), O_CLOEXEC) == 0, ErrorCode::Io,
            "cannot make a pipe: ", std::strerror(errno));
    p.report = ends[1];
    pid_t child = fork();
    if (child == 0) {
        become(p);
    }
    int problem = child < 0 ? errno : 0;
    close(ends[1]);
    ssize_t got = 0;
    while (child > 0 && (got = read(ends[0], &problem, sizeof problem)) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    ChildProcess out(child);
    require(child > 0 && got <= 0, ErrorCode::Io, "cannot start '", command.arguments[0],
            "': ", std::strerror(problem));
    return out;
}

ChildProcess::~ChildProcess() {
    send(SIGKILL);
    int status = 0;
    while (id_ > 0 && !code_ && waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)), code_(other.code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(code_, other.code_);
    return *this;
}

std::optional<int> ChildProcess::exit_code() {
    int status = 0;
    if (!code_ && id_ > 0 && waitpid(id_, &status, WNOHANG) == id_) {
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return code_;
}

void ChildProcess::send(int signal) noexcept {
    if (id_ > 0 && !code_) {
        kill(id_, signal);
    }
}

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return access(name.c_str(), X_OK) == 0 ? name : std::string();
    }
    const char* path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
    while (!rest.empty()) {
        size_t end = std::min(rest.find(':'), rest.size());
        std::string candidate = str(rest.substr(0, end), '/', name);
        if (end > 0 && access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return "";
}

} // namespace ingot
