// SPDX-License-Identifier: Apache-2.0
// What a builder's configuration says of an engine beyond graph, weights and profiles. It travels
// in the engine's metadata: the builder writes it, the runtime reads it.
#pragma once

#include "NvInferRuntime.h"
#include "engine/engine.h"

#include <string>
#include <vector>

namespace ingot::api {

struct EngineFacts {
    std::string name; // of the network
    nvinfer1::ProfilingVerbosity verbosity = nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    nvinfer1::HardwareCompatibilityLevel hardware = nvinfer1::HardwareCompatibilityLevel::kNONE;
    nvinfer1::TacticSources tactic_sources = 3;
    bool tf32 = true;
    std::vector<std::string> debug_tensors; // names that markDebug() marked
    bool debug_unfused = false;             // markUnfusedTensorsAsDebugTensors()
};

void put_facts(const EngineFacts& facts, Properties& properties);
/// Defaults stand for what an engine does not say. Errors: InvalidEngine for what it says wrong.
EngineFacts read_facts(const Engine& engine);

} // namespace ingot::api
