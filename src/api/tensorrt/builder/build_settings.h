// SPDX-License-Identifier: Apache-2.0
// The builder's settings that an engine keeps beside graph, weights and profiles. They travel in
// the engine's metadata: the builder writes them, the runtime reads them.
#pragma once

#include "NvInferRuntime.h"
#include "cache/timing_cache.h"
#include "engine/engine.h"

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace ingot::api {

/// Min, opt and max values of shape inputs.
template <class T>
using ProfileValues = std::map<std::string, std::array<std::vector<T>, 3>>;

struct BuildSettings {
    std::string name; // of the network
    nvinfer1::ProfilingVerbosity verbosity = nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    nvinfer1::HardwareCompatibilityLevel hardware = nvinfer1::HardwareCompatibilityLevel::kNONE;
    nvinfer1::TacticSources tactic_sources = 3;
    bool tf32 = true;
    bool batch_invariant = false;                            // kDISTRIBUTIVE_INDEPENDENCE
    int64_t workspace = std::numeric_limits<int64_t>::max(); // bytes of kWORKSPACE
    int64_t shared_memory = 0;    // bytes of kTACTIC_SHARED_MEMORY; 0: what the device has
    bool streams_weights = false; // kWEIGHT_STREAMING
    std::map<std::string, std::string> aliases; // output -> the input whose memory it overwrites
    std::vector<std::string> debug_tensors;     // the tensors of markDebug()
    bool debug_unfused = false;                 // markUnfusedTensorsAsDebugTensors()
    std::vector<ProfileValues<int64_t>> values; // by profile
    std::vector<ProfileValues<int32_t>> narrow_values; // the same, clamped
};

void put_build_settings(const BuildSettings& settings, Properties& properties);
/// Missing settings keep their defaults. Errors: InvalidEngine for malformed ones.
BuildSettings read_build_settings(const Engine& engine);

/// Timings of tactics, stored in the engine beside its settings.
void put_timings(const plan::TimingCache::Entries& timings, Properties& properties);
/// Null when the engine has none.
std::shared_ptr<plan::TimingCache> timings_of(const Engine& engine);

} // namespace ingot::api
