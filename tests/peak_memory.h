// SPDX-License-Identifier: Apache-2.0
// How much memory a piece of work takes at most.
#pragma once

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

namespace ingot::test {

/// The largest resident size of this process since the last reset, in bytes.
inline int64_t peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::stoll(line.substr(6)) * 1024;
        }
    }
    return 0;
}

/// Runs f in a process of its own and returns by how many bytes its resident size grew at most
/// beyond what it was before; nullopt when the process did not end well, or f threw.
inline std::optional<int64_t> peak_growth(const std::function<void()>& f) {
    int ends[2];
    if (pipe(ends) != 0) {
        return std::nullopt;
    }
    pid_t child = fork();
    if (child == 0) {
        malloc_trim(0); // what the parent freed must not serve here
        std::ofstream("/proc/self/clear_refs") << 5;
        int64_t before = peak_resident_bytes();
        try {
            f();
        } catch (...) {
            _exit(1);
        }
        int64_t grown = peak_resident_bytes() - before;
        _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
    }
    close(ends[1]);
    int64_t grown = 0;
    bool told = read(ends[0], &grown, sizeof grown) == sizeof grown;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return told && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(grown)
                                                                 : std::nullopt;
}

} // namespace ingot::test
