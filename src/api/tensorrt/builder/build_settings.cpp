// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_settings.h"

#include "base/json.h"
#include "base/log.h"

#include <algorithm>

namespace ingot::api {

namespace {

constexpr const char* key = "tensorrt";
constexpr const char* timings_key = "timings";

template <class E>
E number(const Json& j, const char* name, E otherwise) {
    int32_t value = j.value(name, static_cast<int32_t>(otherwise));
    return value < 0 || value >= nvinfer1::EnumMax<E>() ? otherwise : static_cast<E>(value);
}

std::vector<ProfileValues<int32_t>> narrowed(const std::vector<ProfileValues<int64_t>>& all) {
    constexpr int64_t least = std::numeric_limits<int32_t>::min();
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    std::vector<ProfileValues<int32_t>> out(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
        for (const auto& [name, values] : all[i]) {
            auto& to = out[i][name];
            for (size_t k = 0; k < values.size(); ++k) {
                for (int64_t v : values[k]) {
                    to[k].push_back(static_cast<int32_t>(std::clamp(v, least, most)));
                }
            }
        }
    }
    return out;
}

} // namespace

void put_build_settings(const BuildSettings& settings, Properties& properties) {
    Json j;
    if (!settings.aliases.empty()) {
        j.set("aliases", settings.aliases);
    }
    j.set("batch_invariant", settings.batch_invariant);
    j.set("debug_tensors", settings.debug_tensors);
    j.set("debug_unfused", settings.debug_unfused);
    j.set("hardware", static_cast<int32_t>(settings.hardware));
    j.set("name", settings.name);
    j.set("shared_memory", settings.shared_memory);
    j.set("tactic_sources", settings.tactic_sources);
    j.set("tf32", settings.tf32);
    if (!settings.values.empty()) {
        j.set("values", settings.values);
    }
    j.set("verbosity", static_cast<int32_t>(settings.verbosity));
    j.set("workspace", settings.workspace);
    properties[key] = j.dump();
}

BuildSettings read_build_settings(const Engine& engine) {
    BuildSettings settings;
    settings.name = engine.graph().name();
    settings.streams_weights = engine.metadata().contains(streaming_property);
    auto found = engine.metadata().find(key);
    if (found == engine.metadata().end()) {
        const std::vector<std::string>& names = engine.graph().output_names();
        auto results = static_cast<std::ptrdiff_t>(engine.result_count());
        // from trtexec --markDebug
        settings.debug_tensors.assign(names.begin() + results, names.end());
        return settings;
    }
    try {
        Json j = Json::parse(found->second);
        settings.name = j.value("name", settings.name);
        settings.verbosity = number(j, "verbosity", settings.verbosity);
        settings.hardware = number(j, "hardware", settings.hardware);
        settings.tactic_sources = j.value("tactic_sources", settings.tactic_sources);
        settings.tf32 = j.value("tf32", settings.tf32);
        settings.batch_invariant = j.value("batch_invariant", settings.batch_invariant);
        settings.workspace = j.value("workspace", settings.workspace);
        settings.shared_memory = j.value("shared_memory", settings.shared_memory);
        settings.debug_tensors = j.value("debug_tensors", settings.debug_tensors);
        settings.debug_unfused = j.value("debug_unfused", settings.debug_unfused);
        settings.aliases = j.value("aliases", settings.aliases);
        settings.values = j.value("values", settings.values);
        settings.narrow_values = narrowed(settings.values);
    } catch (const Error& e) {
        fail(ErrorCode::InvalidEngine, "property '", key,
             "' of the engine is damaged: ", e.message());
    }
    return settings;
}

void put_timings(const plan::TimingCache::Entries& timings, Properties& properties) {
    properties[timings_key] = plan::print_timings(timings);
}

std::shared_ptr<plan::TimingCache> timings_of(const Engine& engine) {
    auto it = engine.metadata().find(timings_key);
    if (it == engine.metadata().end()) {
        return nullptr;
    }
    std::string why;
    auto entries = plan::parse_timings(it->second, why);
    if (!entries) {
        log(LogLevel::Warning, "the engine's timings are left out: ", why);
        return nullptr;
    }
    auto cache = std::make_shared<plan::TimingCache>("");
    cache->assign(std::move(*entries));
    return cache;
}

} // namespace ingot::api
