// SPDX-License-Identifier: Apache-2.0
#include "emulator/kept.h"

#include "base/error.h"
#include "base/text.h"
#include "source_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ingot::emulator {

namespace {

constexpr int64_t day = 24 * 60 * 60;
constexpr int64_t days_kept = 14;

std::string chosen() {
    if (const char* named = std::getenv("INGOT_KEPT")) {
        return named;
    }
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) {
        return str(cache, "/ingot/emulated");
    }
    if (const char* home = std::getenv("HOME")) {
        return str(home, "/.cache/ingot/emulated");
    }
    return source_dir() + "/build/emulated";
}

/// Seconds since 1970 of the last change; 0 for what is not there.
int64_t changed(const std::string& path) {
    struct stat s {};
    return stat(path.c_str(), &s) == 0 ? static_cast<int64_t>(s.st_mtime) : 0;
}

} // namespace

void sweep(const std::string& folder, int64_t seconds) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        int64_t used = changed(entry.path());
        if (used != 0 && used < seconds) {
            std::filesystem::remove(entry.path(), ignored);
        }
    }
}

const std::string& kept_folder() {
    static const std::string folder = [] {
        std::string path = chosen();
        std::error_code error;
        std::filesystem::create_directories(path, error);
        require(!error, ErrorCode::Io, "cannot make the folder ", path, ": ", error.message(),
                "; INGOT_KEPT names another");
        std::string stamp = path + "/swept";
        int64_t now = std::time(nullptr);
        if (changed(stamp) < now - day) {
            std::ofstream(stamp) << now << '\n';
            sweep(path, now - days_kept * day);
        }
        return path;
    }();
    return folder;
}

bool found_kept(const std::string& path) {
    return utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

} // namespace ingot::emulator
