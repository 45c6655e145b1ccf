// SPDX-License-Identifier: Apache-2.0
// Timing at build: the tactics of an engine are timed on the GPU, if there is one, and the winners
// are stored in the engine.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "engine/engine.h"
#include "run/plugin.h"

namespace ingot::api {

/// The engine with timings where a timing cache, kERROR_ON_TIMING_CACHE_MISS or an optimisation
/// level of 4 or 5 asks for them; not with kDISABLE_TIMING_CACHE. Errors: InvalidArgument for a
/// choice that the cache must have and lacks; errors of the timed runs. `plugins` holds the
/// engine's plugins; null when there are none.
std::shared_ptr<const Engine> with_timings(std::shared_ptr<const Engine> engine,
                                           const BuilderConfig& config,
                                           std::shared_ptr<plan::PluginHost> plugins);
/// The limit on device memory for timing tactics (kTACTIC_DRAM), in bytes; 0: no limit.
int64_t tactic_memory(const BuilderConfig& config);

} // namespace ingot::api
