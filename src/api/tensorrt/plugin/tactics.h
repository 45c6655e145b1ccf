// SPDX-License-Identifier: Apache-2.0
// Times a plugin's own tactics at build; the engine keeps the fastest.
#pragma once

#include "api/tensorrt/plugin/host.h"
#include "cache/timing_cache.h"
#include "plan/backend.h"

#include <functional>

namespace ingot::api {

/// The inputs and results of building with plugins.
struct PluginBuild {
    const std::vector<Profile>* profiles = nullptr; // plugins are configured for these
    /// The device that tactics are timed on; null for none. Asked when there are several.
    std::function<const Backend*()> place;
    /// Looks up and stores the timings of plugins with a getTimingCacheID(); null for none.
    std::shared_ptr<plan::TimingCache> timings;
    bool timed_before = false; // a missing timing is an error
    int runs = 4;              // the median counts
    /// The most bytes of a GPU that timing may take; 0: no limit.
    int64_t memory_limit = 0;
    Report report;
    /// Result: the plugins of the built graph.
    std::vector<GivenPlugin> used;
};

/// The fastest tactic; a negative time means that it cannot run. nullopt when none can.
struct TimedTactic {
    int32_t tactic = 0;
    double ms = 0;
};
std::optional<TimedTactic> fastest_tactic(std::span<const int32_t> tactics,
                                          const std::function<double(int32_t)>& milliseconds);

/// The tactic for `plugin` of node `p` on inputs of these types; all sizes but the data-dependent
/// ones are numbers, where known. Errors: InvalidArgument for a tactic without a required earlier
/// timing, and for invalid tactics.
int32_t choose_tactic(const PluginBuild& how, nvinfer1::IPluginV3& plugin, const Plugin& p,
                      std::span<const Type> in);

} // namespace ingot::api
