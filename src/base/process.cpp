// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include "base/error.h"
#include "base/log.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace ingot {

uint64_t memory_bytes() {
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    char text[128] = {};
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned long long all = 0;
    unsigned long long resident = 0;
    if (got <= 0 || std::sscanf(text, "%llu %llu", &all, &resident) != 2) {
        return 0;
    }
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t peak_memory_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

ProcessResult run_process(const std::vector<std::string>& arguments) {
    std::array<int, 2> ends{};
    require(pipe2(ends.data(), O_CLOEXEC) == 0, ErrorCode::Io,
            "cannot make a pipe: ", std::strerror(errno));
    std::vector<char*> argv;
    for (const std::string& a : arguments) {
        argv.push_back(const_cast<char*>(a.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t child = 0;
    int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    ProcessResult result;
    if (error != 0) {
        close(ends[0]);
        require(error == ENOENT, ErrorCode::Io, "cannot start '", arguments[0],
                "': ", std::strerror(error));
        result.exit_code = 127;
        return result;
    }
    std::array<char, 4096> buffer{};
    for (;;) {
        ssize_t n = read(ends[0], buffer.data(), buffer.size());
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        if (n > 0 && result.output.size() < (1U << 20)) {
            result.output.append(buffer.data(), static_cast<size_t>(n));
        }
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

TemporaryFolder::TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = str(base == nullptr || *base == '\0' ? "/tmp" : base, "/ingot-XXXXXX");
    require(mkdtemp(path_.data()) != nullptr, ErrorCode::Io, "cannot make a temporary folder '",
            path_, "': ", std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
    try {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    } catch (const std::bad_alloc&) {
        log(LogLevel::Warning, "no memory is left to remove ", path_);
    }
}

} // namespace ingot
