// SPDX-License-Identifier: Apache-2.0
// The plugins of one engine: made from a registry at load, and cloned for each context.
#pragma once

#include "api/tensorrt/plugin/registry.h"
#include "ir/graph.h"
#include "run/plugin.h"

namespace ingot::api {

/// Null for a graph without plugins and source kernels. Errors: Unsupported naming the node whose
/// plugin has no creator; InvalidArgument for a plugin that cannot be made. The host keeps the
/// plugins; creators must live until it is made, the allocator as long as the host.
std::shared_ptr<plan::PluginHost> make_plugin_host(const Graph& g, PluginRegistry& registry,
                                                   nvinfer1::IGpuAllocator* allocator,
                                                   const Report& report);

/// A plugin that the build made.
struct GivenPlugin {
    Plugin node;
    std::unique_ptr<nvinfer1::IPluginV3> plugin;
};
/// A host of given plugins. Errors: InvalidArgument for a plugin that cannot run.
std::shared_ptr<plan::PluginHost> make_plugin_host(std::vector<GivenPlugin> given,
                                                   nvinfer1::IGpuAllocator* allocator,
                                                   const Report& report);

} // namespace ingot::api
