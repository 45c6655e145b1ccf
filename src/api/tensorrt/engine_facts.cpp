// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/engine_facts.h"

#include "base/error.h"

#include <nlohmann/json.hpp>

namespace ingot::api {

namespace {

constexpr const char* key = "tensorrt";

template <class E>
E number(const nlohmann::json& j, const char* name, E otherwise) {
    int32_t value = j.value(name, static_cast<int32_t>(otherwise));
    return value < 0 || value >= nvinfer1::EnumMax<E>() ? otherwise : static_cast<E>(value);
}

} // namespace

void put_facts(const EngineFacts& facts, Properties& properties) {
    nlohmann::json j = {{"name", facts.name},
                        {"verbosity", static_cast<int32_t>(facts.verbosity)},
                        {"hardware", static_cast<int32_t>(facts.hardware)},
                        {"tactic_sources", facts.tactic_sources},
                        {"tf32", facts.tf32},
                        {"debug_tensors", facts.debug_tensors},
                        {"debug_unfused", facts.debug_unfused}};
    properties[key] = j.dump();
}

EngineFacts read_facts(const Engine& engine) {
    EngineFacts facts;
    facts.name = engine.graph().name();
    auto found = engine.metadata().find(key);
    if (found == engine.metadata().end()) {
        return facts;
    }
    try {
        nlohmann::json j = nlohmann::json::parse(found->second);
        facts.name = j.value("name", facts.name);
        facts.verbosity = number(j, "verbosity", facts.verbosity);
        facts.hardware = number(j, "hardware", facts.hardware);
        facts.tactic_sources = j.value("tactic_sources", facts.tactic_sources);
        facts.tf32 = j.value("tf32", facts.tf32);
        facts.debug_tensors = j.value("debug_tensors", facts.debug_tensors);
        facts.debug_unfused = j.value("debug_unfused", facts.debug_unfused);
    } catch (const nlohmann::json::exception& e) {
        fail(ErrorCode::InvalidEngine, "property '", key, "' of the engine is damaged: ", e.what());
    }
    return facts;
}

} // namespace ingot::api
