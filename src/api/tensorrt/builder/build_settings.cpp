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

void put_facts(const EngineFacts& facts, Properties& properties) {
    Json j;
    if (!facts.aliases.empty()) {
        j.set("aliases", facts.aliases);
    }
    j.set("batch_invariant", facts.batch_invariant);
    j.set("debug_tensors", facts.debug_tensors);
    j.set("debug_unfused", facts.debug_unfused);
    j.set("hardware", static_cast<int32_t>(facts.hardware));
    j.set("name", facts.name);
    j.set("shared_memory", facts.shared_memory);
    j.set("tactic_sources", facts.tactic_sources);
    j.set("tf32", facts.tf32);
    if (!facts.values.empty()) {
        j.set("values", facts.values);
    }
    j.set("verbosity", static_cast<int32_t>(facts.verbosity));
    j.set("workspace", facts.workspace);
    properties[key] = j.dump();
}

EngineFacts read_facts(const Engine& engine) {
    EngineFacts facts;
    facts.name = engine.graph().name();
    facts.streams_weights = engine.metadata().contains(streaming_property);
    auto found = engine.metadata().find(key);
    if (found == engine.metadata().end()) {
        const std::vector<std::string>& names = engine.graph().output_names();
        auto results = static_cast<std::ptrdiff_t>(engine.result_count());
        // from trtexec --markDebug
        facts.debug_tensors.assign(names.begin() + results, names.end());
        return facts;
    }
    try {
        Json j = Json::parse(found->second);
        facts.name = j.value("name", facts.name);
        facts.verbosity = number(j, "verbosity", facts.verbosity);
        facts.hardware = number(j, "hardware", facts.hardware);
        facts.tactic_sources = j.value("tactic_sources", facts.tactic_sources);
        facts.tf32 = j.value("tf32", facts.tf32);
        facts.batch_invariant = j.value("batch_invariant", facts.batch_invariant);
        facts.workspace = j.value("workspace", facts.workspace);
        facts.shared_memory = j.value("shared_memory", facts.shared_memory);
        facts.debug_tensors = j.value("debug_tensors", facts.debug_tensors);
        facts.debug_unfused = j.value("debug_unfused", facts.debug_unfused);
        facts.aliases = j.value("aliases", facts.aliases);
        facts.values = j.value("values", facts.values);
        facts.narrow_values = narrowed(facts.values);
    } catch (const Error& e) {
        fail(ErrorCode::InvalidEngine, "property '", key,
             "' of the engine is damaged: ", e.message());
    }
    return facts;
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
