// SPDX-License-Identifier: Apache-2.0
// Which of a plugin's own implementations an engine holds: the one that was the fastest where the
// engine is built.
#pragma once

#include "api/tensorrt/plugin/host.h"
#include "cache/timing_cache.h"
#include "plan/backend.h"

#include <functional>

namespace ingot::api {

/// What a build does with its plugins.
struct PluginBuild {
    const std::vector<Profile>* profiles = nullptr; // they are configured for these
    /// The device that tactics are timed on; null for none. Asked when there are several.
    std::function<const Backend*()> place;
    /// Has timings of plugins with a getTimingCacheID(), and gets them; null for none.
    std::shared_ptr<plan::TimingCache> timings;
    bool timed_before = false; // a timing that the cache could have is an error
    int runs = 4;              // whose median counts
    /// The most bytes of a GPU that timing may take; 0: no limit.
    int64_t memory_limit = 0;
    Report report;
    /// Filled in: the plugins of the graph that was built.
    std::vector<GivenPlugin> used;
};

/// The tactic of the least time; those whose time is negative could not run. nullopt when none
/// could.
struct TimedTactic {
    int32_t tactic = 0;
    double ms = 0;
};
std::optional<TimedTactic> fastest_tactic(std::span<const int32_t> tactics,
                                          const std::function<double(int32_t)>& milliseconds);

/// The tactic for `plugin`, whose node is `p`, on inputs of these types; all sizes but those that
/// it finds out are numbers, where they are known. Errors: InvalidArgument for a tactic that should
/// have been timed before, and for what the plugin says of its tactics.
int32_t choose_tactic(const PluginBuild& how, nvinfer1::IPluginV3& plugin, const Plugin& p,
                      std::span<const Type> in);

} // namespace ingot::api
