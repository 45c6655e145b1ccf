// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/files_beside.h"

#include "base/error.h"
#include "base/file.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot::ort {

namespace fs = std::filesystem;

FilesBeside::FilesBeside(const std::string& model_path) : folder_(parent_folder(model_path)) {
    std::ifstream list("/proc/self/maps");
    // 7f8e0c000000-7f8e0c021000 r--p 00001000 fd:01 1835 /path
    for (std::string line; std::getline(list, line);) {
        std::istringstream words(line);
        Map m;
        uint32_t first = 0;
        uint32_t second = 0;
        char dash = 0;
        char colon = 0;
        std::string access;
        words >> std::hex >> m.begin >> dash >> m.end >> access >> m.offset >> first >> colon >>
            second >> std::dec >> m.file;
        m.device = makedev(first, second);
        if (words && m.file != 0) {
            maps_.push_back(m);
        }
    }
}

std::optional<ExternalPlace> FilesBeside::find(const ExternalPlace& place, const TensorView& t) {
    auto begin = reinterpret_cast<uintptr_t>(t.data);
    auto map = std::find_if(maps_.begin(), maps_.end(), [&](const Map& m) {
        return begin >= m.begin && begin < m.end && t.bytes <= m.end - begin;
    });
    if (map == maps_.end() || map->offset + (begin - map->begin) != place.offset) {
        return std::nullopt;
    }
    std::string inside = fs::path(place.file).lexically_relative(folder_).generic_string();
    bool is_beneath = !inside.empty() && !inside.starts_with("..");
    ExternalPlace out{is_beneath ? inside : place.file, place.offset};
    auto [number, is_new] = numbers_.try_emplace(out.file);
    if (is_new) {
        number->second = number_of(out.file);
    }
    bool is_same = number->second == FileNumber(map->device, map->file);
    return is_same ? std::optional(std::move(out)) : std::nullopt;
}

FilesBeside::FileNumber FilesBeside::number_of(const std::string& file) const {
    struct stat found {};
    try {
        // The parser opens files by this rule, which the host's may differ from.
        static_cast<void>(MappedFile::open_beneath(folder_, file));
    } catch (const Error&) {
        return {};
    }
    if (::stat((fs::path(folder_) / file).c_str(), &found) != 0) {
        return {};
    }
    return {found.st_dev, found.st_ino};
}

} // namespace ingot::ort
