// SPDX-License-Identifier: Apache-2.0
// Timing at build: where there is a GPU, the tactics of an engine are timed on it, and the winners
// travel with the engine.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "engine/engine.h"
#include "run/plugin.h"

namespace ingot::api {

/// The engine with timings where they were asked for: by a timing cache,
/// kERROR_ON_TIMING_CACHE_MISS or an optimisation level of 4 or 5; not with kDISABLE_TIMING_CACHE.
/// Errors: InvalidArgument for a choice that the cache must have and has not; what a run of the
/// engine throws.
/// `plugins` has those of the engine; null when there are none.
std::shared_ptr<const Engine> with_timings(std::shared_ptr<const Engine> engine,
                                           const BuilderConfig& config,
                                           std::shared_ptr<plan::PluginHost> plugins);
/// The most bytes of device memory that timing tactics may take (kTACTIC_DRAM); 0: no limit.
int64_t tactic_memory(const BuilderConfig& config);

} // namespace ingot::api
