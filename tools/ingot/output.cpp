// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include "base/printable.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ingot::tool {

namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one stdout
int problem = 0; // errno of the first write that failed

/// All of it, or 0 as fopencookie() has it for errors.
ssize_t write_filtered(void*, const char* data, size_t bytes) {
    std::string text = printable({data, bytes});
    for (size_t done = 0; done < text.size();) {
        ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            problem = problem == 0 ? errno : problem;
            return 0;
        }
        done += static_cast<size_t>(n);
    }
    return static_cast<ssize_t>(bytes);
}

} // namespace

void filter_stdout() {
    cookie_io_functions_t functions{};
    functions.write = write_filtered;
    FILE* filtered = ::fopencookie(nullptr, "w", functions);
    if (filtered == nullptr) {
        return;
    }
    std::setvbuf(filtered, nullptr, ::isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF, 1U << 16U);
    stdout = filtered;
}

void print_lines_at_once() {
    std::setvbuf(stdout, nullptr, _IOLBF, 1U << 16U);
}

bool end_stdout() {
    if (std::fflush(stdout) != 0 && problem == 0) {
        problem = errno;
    }
    if (problem != 0) {
        std::fprintf(stderr, "ingot: error: cannot write to stdout: %s\n", std::strerror(problem));
    }
    return problem == 0;
}

} // namespace ingot::tool
