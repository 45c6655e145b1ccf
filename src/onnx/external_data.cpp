// SPDX-License-Identifier: Apache-2.0
#include "onnx/external_data.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "onnx/wire.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

namespace ingot::onnx {
namespace {

uint64_t parse_number(const std::string& key, const std::string& text) {
    uint64_t v = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, v);
    require(problem != std::errc::result_out_of_range, ErrorCode::InvalidModel,
            "external data: ", key, " ", shown(text), " does not fit in 64 bits");
    require(problem == std::errc() && stop == end, ErrorCode::InvalidModel, "external data: ", key,
            " is ", shown(text), ", expected a number of bytes in decimal digits");
    return v;
}

struct SharedRules {
    std::mutex mutex;
    ExternalRules rules;
};

SharedRules& shared_rules() {
    static SharedRules shared;
    return shared;
}

ExternalRules rules() {
    SharedRules& shared = shared_rules();
    std::scoped_lock lock(shared.mutex);
    return shared.rules;
}

/// ".ssh/id_rsa", "data/.secret"; not "./w.bin".
bool is_hidden(std::string_view path) {
    while (!path.empty()) {
        size_t slash = std::min(path.find('/'), path.size());
        std::string_view part = path.substr(0, slash);
        if (part.starts_with('.') && part != "." && part != "..") {
            return true;
        }
        path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return false;
}

} // namespace

void set_external_rules(ExternalRules rules) {
    SharedRules& shared = shared_rules();
    std::scoped_lock lock(shared.mutex);
    shared.rules = std::move(rules);
}

ExternalLocation parse_external(const StringPairs& entries) {
    ExternalLocation where;
    std::set<std::string_view> seen;
    for (const auto& [key, value] : entries) {
        require(seen.insert(key).second, ErrorCode::InvalidModel, "external data: key ", shown(key),
                " occurs twice");
        if (key == "location") {
            where.location = value;
        } else if (key == "offset") {
            where.offset = parse_number(key, value);
        } else if (key == "length") {
            where.length = parse_number(key, value);
        } else if (key != "checksum" && !key.starts_with("prepacked")) {
            fail(ErrorCode::InvalidModel, "external data: unknown key ", shown(key),
                 "; known keys are location, offset, length, checksum");
        }
    }
    require(!where.location.empty(), ErrorCode::InvalidModel, "external data: no location");
    require(where.location.find('\0') == std::string::npos, ErrorCode::InvalidModel,
            "external data: location ", shown(where.location), " contains a NUL character");
    return where;
}

ExternalFiles::Slice ExternalFiles::map(const ExternalLocation& where, uint64_t expected,
                                        std::string_view what) {
    require(!folder_.empty(), ErrorCode::InvalidModel, "external data ", shown(where.location),
            ": the model was read from memory, so there is no folder to look in; read it from a "
            "file, or store the data inside the model");
    const std::string place = str("external data ", shown(where.location));
    require(where.length.value_or(expected) == expected, ErrorCode::InvalidModel, place,
            ": length is ", where.length.value_or(0), " bytes, expected ", expected, " (", what,
            ")");
    auto [found, is_new] = files_.try_emplace(where.location);
    if (is_new) {
        try {
            const ExternalRules now = rules();
            bool allowed =
                std::find(now.hidden.begin(), now.hidden.end(), where.location) != now.hidden.end();
            require(
                allowed || !is_hidden(where.location), ErrorCode::InvalidModel,
                "the name is that of a hidden file, which a model may not read; rename it if it "
                "belongs to the model, or allow it by name with --allowHiddenFile");
            found->second = MappedFile::open_beneath(folder_, where.location);
            const std::string path = str(folder_, "/", where.location);
            uint64_t bytes = found->second->bytes().size();
            if (now.told) {
                now.told(path, bytes);
            } else {
                log(LogLevel::Info, "external data is read from ", path, ", ", bytes, " bytes");
            }
        } catch (Error& e) {
            files_.erase(found);
            e.at(place);
            throw;
        }
    }
    const std::span<const std::byte> all = found->second->bytes();
    const std::optional<uint64_t> end = checked_add(where.offset, expected);
    require(end && *end <= all.size(), ErrorCode::InvalidModel, place, ": needs ", expected,
            " bytes at offset ", where.offset, ", but the file has ", all.size(), " bytes");
    return {all.subspan(static_cast<size_t>(where.offset), static_cast<size_t>(expected)),
            found->second};
}

} // namespace ingot::onnx
