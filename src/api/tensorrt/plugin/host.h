// SPDX-License-Identifier: Apache-2.0
// The plugins of one engine: made from a registry when it is loaded, and cloned for each context.
#pragma once

#include "api/tensorrt/plugin/registry.h"
#include "ir/graph.h"
#include "run/plugin.h"

namespace ingot::api {

/// Null for a graph without plugins and kernels of source text. Errors: Unsupported naming the node
/// whose plugin has no creator; InvalidArgument for one that cannot be made. The host keeps the
/// plugins; creators have to live until it is made, the allocator as long as it.
std::shared_ptr<plan::PluginHost> make_plugin_host(const Graph& g, PluginRegistry& registry,
                                                   nvinfer1::IGpuAllocator* allocator,
                                                   const Report& report);

/// A plugin that is there already, as a build has it.
struct GivenPlugin {
    Plugin node;
    std::unique_ptr<nvinfer1::IPluginV3> plugin;
};
/// A host of these. Errors: InvalidArgument for a plugin that cannot run.
std::shared_ptr<plan::PluginHost> make_plugin_host(std::vector<GivenPlugin> given,
                                                   nvinfer1::IGpuAllocator* allocator,
                                                   const Report& report);

} // namespace ingot::api
