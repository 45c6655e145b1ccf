// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/profiles.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace ingot::ort {

namespace {

using Shapes = std::map<std::string, std::vector<std::vector<int64_t>>, std::less<>>;

constexpr int64_t any_size = 32767; // the size of inputs that a profile leaves out

std::vector<int64_t> parse_dims(std::string_view key, std::string_view entry,
                                std::string_view text) {
    std::vector<int64_t> dims;
    while (true) {
        size_t end = std::min(text.find('x'), text.size());
        int32_t v = 0;
        auto [at, error] = std::from_chars(text.data(), text.data() + end, v);
        require(error == std::errc() && at == text.data() + end && end != 0 && v >= 0,
                ErrorCode::InvalidArgument, "provider option \"", key, "\": \"", entry,
                "\" has the size \"", text.substr(0, end),
                "\", expected whole numbers with x between them, as in input:1x3x224x224");
        dims.push_back(v);
        if (end == text.size()) {
            return dims;
        }
        text.remove_prefix(end + 1);
    }
}

Shapes parse_shapes(std::string_view key, std::string_view text) {
    Shapes out;
    while (!text.empty()) {
        size_t end = std::min(text.find(','), text.size());
        std::string_view entry = text.substr(0, end);
        size_t colon = entry.find(':');
        require(colon != std::string_view::npos && colon != 0 && colon + 1 != entry.size(),
                ErrorCode::InvalidArgument, "provider option \"", key, "\": \"", entry,
                "\" is no shape, expected name:sizes, as in input:1x3x224x224");
        out[std::string(entry.substr(0, colon))].push_back(
            parse_dims(key, entry, entry.substr(colon + 1)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

void check_same_names(const Shapes& least, const char* key, const Shapes& other) {
    for (const auto& [name, shapes] : least) {
        auto it = other.find(name);
        require(it != other.end(), ErrorCode::InvalidArgument, "provider option \"", key,
                "\" has no shape for '", name, "', which \"nv_profile_min_shapes\" has");
        require(it->second.size() == shapes.size(), ErrorCode::InvalidArgument,
                "provider option \"", key, "\" has ", it->second.size(), " shapes for '", name,
                "', \"nv_profile_min_shapes\" has ", shapes.size());
    }
    for (const auto& [name, shapes] : other) {
        require(least.contains(name), ErrorCode::InvalidArgument, "provider option \"", key,
                "\" has a shape for '", name, "', which \"nv_profile_min_shapes\" has not");
    }
}

void check_order(const std::string& name, size_t profile,
                 const std::array<std::vector<int64_t>, 3>& r) {
    require(r[0].size() == r[1].size() && r[0].size() == r[2].size(), ErrorCode::InvalidArgument,
            "profile ", profile, ": the shapes of '", name, "' differ in rank: least ", r[0],
            ", usual ", r[1], ", greatest ", r[2]);
    for (size_t i = 0; i < r[0].size(); ++i) {
        require(r[0][i] <= r[1][i] && r[1][i] <= r[2][i], ErrorCode::InvalidArgument, "profile ",
                profile, ": dimension ", i, " of '", name, "' has the least ", r[0][i],
                ", the usual ", r[1][i], " and the greatest ", r[2][i],
                "; expected least <= usual <= greatest");
    }
}

} // namespace

std::vector<ShapeProfile> parse_profiles(const Options& options) {
    constexpr const char* keys[] = {"nv_profile_min_shapes", "nv_profile_opt_shapes",
                                    "nv_profile_max_shapes"};
    const std::string* texts[] = {&options.nv_profile_min_shapes, &options.nv_profile_opt_shapes,
                                  &options.nv_profile_max_shapes};
    if (texts[0]->empty() && texts[1]->empty() && texts[2]->empty()) {
        return {};
    }
    std::array<Shapes, 3> lists;
    for (size_t i = 0; i < 3; ++i) {
        require(!texts[i]->empty(), ErrorCode::InvalidArgument, "provider option \"", keys[i],
                "\" is missing: profiles need the least, the usual and the greatest shapes");
        lists[i] = parse_shapes(keys[i], *texts[i]);
    }
    check_same_names(lists[0], keys[1], lists[1]);
    check_same_names(lists[0], keys[2], lists[2]);
    std::vector<ShapeProfile> out;
    for (const auto& [name, shapes] : lists[0]) {
        if (out.size() < shapes.size()) {
            out.resize(shapes.size());
        }
        for (size_t p = 0; p < shapes.size(); ++p) {
            auto& ranges = out[p][name];
            for (size_t i = 0; i < 3; ++i) {
                ranges[i] = lists[i].at(name)[p];
            }
            check_order(name, p, ranges);
        }
    }
    return out;
}

std::vector<ShapeProfile> profiles_for(const std::vector<ShapeProfile>& profiles,
                                       const std::map<std::string, std::vector<int64_t>>& shapes) {
    std::vector<ShapeProfile> out;
    for (size_t p = 0; p < profiles.size(); ++p) {
        ShapeProfile mine;
        bool any = false;
        for (const auto& [name, declared] : shapes) {
            std::array<std::vector<int64_t>, 3> ranges;
            auto it = profiles[p].find(name);
            if (it != profiles[p].end()) {
                any = true;
                ranges = it->second;
                require(ranges[0].size() == declared.size(), ErrorCode::InvalidArgument, "profile ",
                        p, ": '", name, "' has ", ranges[0].size(),
                        " sizes, but the input has rank ", declared.size(), ": ", declared);
            } else {
                ranges = {declared, declared, declared};
                for (int64_t& d : ranges[0]) {
                    d = d < 0 ? 0 : d;
                }
                for (int64_t& d : ranges[1]) {
                    d = d < 0 ? 1 : d;
                }
                for (int64_t& d : ranges[2]) {
                    d = d < 0 ? any_size : d;
                }
            }
            for (size_t i = 0; i < declared.size(); ++i) { // only open sizes use the values
                for (auto& r : ranges) {
                    r[i] = declared[i] < 0 ? r[i] : declared[i];
                }
            }
            mine.emplace(name, std::move(ranges));
        }
        if (any) {
            out.push_back(std::move(mine));
        }
    }
    return out.size() == profiles.size() ? out : std::vector<ShapeProfile>();
}

void check_profile_names(const std::vector<ShapeProfile>& profiles,
                         const std::vector<std::string>& values,
                         const std::vector<std::string>& inputs) {
    std::set<std::string, std::less<>> known(values.begin(), values.end());
    for (const ShapeProfile& p : profiles) {
        for (const auto& [name, ranges] : p) {
            require(known.contains(name), ErrorCode::InvalidArgument, "the profile shapes name '",
                    name, "', which is no input of the model; its inputs are ", join(inputs, ", "));
        }
    }
}

} // namespace ingot::ort
