// SPDX-License-Identifier: Apache-2.0
#include "base/device_files.h"

#include "base/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

namespace ingot {

namespace {

/// nvidiactl, nvidia-uvm, nvidia0 and so on; not those that only displays need.
bool is_needed(const std::string& name) {
    constexpr std::string_view prefix = "nvidia";
    if (!name.starts_with(prefix)) {
        return false;
    }
    std::string rest = name.substr(prefix.size());
    return rest == "ctl" || rest == "-uvm" ||
           (!rest.empty() && std::all_of(rest.begin(), rest.end(),
                                         [](unsigned char c) { return std::isdigit(c) != 0; }));
}

} // namespace

std::string forbidden_device_file(const std::string& folder) {
    std::set<std::string> found;
    std::error_code problem;
    for (std::filesystem::directory_iterator it(folder, problem), end; !problem && it != end;
         it.increment(problem)) {
        if (is_needed(it->path().filename().string())) {
            found.insert(it->path().string());
        }
    }
    for (const std::string& path : found) {
        if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0 && errno == EACCES) {
            return path;
        }
    }
    return "";
}

std::string forbidden_device_text(const std::string& folder) {
    std::string path = forbidden_device_file(folder);
    return path.empty() ? path
                        : str("; this user may not read and write '", path,
                              "': let it, or run as a user or in a group that may");
}

} // namespace ingot
