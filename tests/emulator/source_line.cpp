// SPDX-License-Identifier: Apache-2.0
#include "emulator/source_line.h"

#include "base/process.h"
#include "base/text.h"
#include "emulator/compile.h"
#include "emulator/kept.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <string_view>

namespace ingot::emulator {

std::string source_line(const void* code) {
    Dl_info info{};
    if (dladdr(code, &info) == 0 || info.dli_fname == nullptr ||
        !std::string_view(info.dli_fname).starts_with(kept_folder())) {
        return {};
    }
    auto offset = reinterpret_cast<uintptr_t>(code) - reinterpret_cast<uintptr_t>(info.dli_fbase);
    char text[32];
    std::snprintf(text, sizeof text, "0x%zx", static_cast<size_t>(offset) - 1);
    ProcessResult r =
        run_process({"addr2line", "-i", "-s", "-e", with_lines(info.dli_fname), text});
    std::string lines;
    for (size_t at = 0; at < r.output.size();) {
        size_t end = std::min(r.output.find('\n', at), r.output.size());
        std::string_view line = std::string_view(r.output).substr(at, end - at);
        if (line.find("ptx_host.h") == std::string_view::npos && line.find('?') != 0) {
            lines += str(lines.empty() ? " at " : ", called at ", line.substr(0, line.find(" (")));
        }
        at = end + 1;
    }
    return lines.empty() ? lines : str(lines, " (text: ", info.dli_fname, ")");
}

std::string source_line_of_caller() {
    void* frames[32];
    int count = backtrace(frames, 32);
    for (int i = 0; i < count; ++i) {
        if (std::string line = source_line(frames[i]); !line.empty()) {
            return line;
        }
    }
    return {};
}

} // namespace ingot::emulator
