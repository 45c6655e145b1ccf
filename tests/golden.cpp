// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include "source_dir.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot {

bool writes_goldens() {
    const char* v = std::getenv("INGOT_WRITE_GOLDENS");
    return v != nullptr && std::string(v) == "1";
}

std::string golden_difference(const std::string& path, const std::string& text) {
    std::filesystem::path file = std::filesystem::path(source_dir()) / path;
    if (writes_goldens()) {
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return "";
    }
    std::ifstream in(file);
    if (!in) {
        return path + " is not there: INGOT_WRITE_GOLDENS=1 writes it";
    }
    std::istringstream now(text);
    for (int line = 1;; ++line) {
        std::string want;
        std::string got;
        bool more = static_cast<bool>(std::getline(in, want));
        bool has = static_cast<bool>(std::getline(now, got));
        if (!more && !has) {
            return "";
        }
        if (more != has || want != got) {
            return path + ":" + std::to_string(line) + ": " + (has ? got : "(no more)") +
                   "\nexpected: " + (more ? want : "(no more)") +
                   "\nINGOT_WRITE_GOLDENS=1 writes it anew; the whole is now\n" + text;
        }
    }
}

} // namespace ingot
