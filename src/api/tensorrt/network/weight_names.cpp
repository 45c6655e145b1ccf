// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/weight_names.h"

#include "api/tensorrt/builder/builder_config.h"
#include "api/tensorrt/network/network.h"

#include <algorithm>

namespace ingot::api {

namespace {

using Role = nv::WeightsRole;
using Flag = nv::BuilderFlag;

struct RoleName {
    std::string_view name;
    Role role;
};

constexpr RoleName role_names[] = {
    {"kernel", Role::kKERNEL}, {"bias", Role::kBIAS}, {"shift", Role::kSHIFT},
    {"scale", Role::kSCALE},   {"power", Role::kANY}, {"constant", Role::kCONSTANT},
};

const RoleName& role_of(std::string_view what) {
    for (const RoleName& r : role_names) {
        if (what.find(r.name) != std::string_view::npos) {
            return r;
        }
    }
    return role_names[std::size(role_names) - 1];
}

/// In the order of all_weights().
std::vector<std::string_view> words_of(nv::LayerType type) {
    switch (type) {
    case nv::LayerType::kCONVOLUTION:
    case nv::LayerType::kDECONVOLUTION:
        return {"kernel", "bias"};
    case nv::LayerType::kSCALE:
        return {"shift", "scale", "power"};
    default:
        return {"constant"};
    }
}

} // namespace

std::string weights_name(const LayerBase& layer, const nv::Weights& w, std::string_view what) {
    if (std::optional<size_t> initializer = layer.network().initializer_of(w)) {
        return layer.network().initializers()[*initializer].name;
    }
    const std::string* given = layer.network().given_name(w);
    return given != nullptr ? *given : str(layer.name, ".", role_of(what).name);
}

std::optional<RefitRequest> refit_request(const Network& network, const BuilderConfig& config) {
    bool any = config.has(Flag::kREFIT);
    bool identical = config.has(Flag::kREFIT_IDENTICAL);
    bool individual = config.has(Flag::kREFIT_INDIVIDUAL);
    bool strip = config.has(Flag::kSTRIP_PLAN);
    require((any ? 1 : 0) + (identical ? 1 : 0) + (individual ? 1 : 0) <= 1,
            ErrorCode::InvalidArgument,
            "of kREFIT, kREFIT_IDENTICAL and kREFIT_INDIVIDUAL more than one is set");
    if (!any && !identical && !individual && !strip) {
        return std::nullopt;
    }
    RefitRequest request;
    request.identical = identical || (strip && !any && !individual);
    request.stripped = strip;
    request.only_named = individual;
    request.named = network.refittable_names();
    for (const auto& layer : network.layers()) {
        std::vector<nv::Weights> all = layer->all_weights();
        std::vector<std::string_view> words = words_of(layer->type());
        for (size_t i = 0; i < std::min(all.size(), words.size()); ++i) {
            // A setting that a parsed node gives without an initializer has no constant of its own.
            bool there = layer->parsed == nullptr || network.initializer_of(all[i]);
            if (!is_empty(all[i]) && there) {
                request.uses[weights_name(*layer, all[i], words[i])].push_back(
                    {layer->name, static_cast<int32_t>(role_of(words[i]).role)});
            }
        }
    }
    return request;
}

} // namespace ingot::api
