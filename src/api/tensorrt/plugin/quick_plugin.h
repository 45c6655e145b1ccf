// SPDX-License-Identifier: Apache-2.0
// Plugins of impl/NvInferPythonPlugin.h as those that the library runs.
#pragma once

#include "NvInfer.h"
#include "ir/graph.h"

#include <memory>
#include <span>

namespace ingot::api {

/// A plugin with the parts that the library runs: itself, or an adapter that owns it. Errors:
/// Unsupported for one of those whose kernels are compiled ahead.
std::unique_ptr<nvinfer1::IPluginV3> runnable_plugin(std::unique_ptr<nvinfer1::IPluginV3> plugin);
/// The plugin that the application knows.
nvinfer1::IPluginV3& origin_of(nvinfer1::IPluginV3& plugin);
/// Before getOutputDataTypes(): the inputs, whose numbers of dimensions an adapted plugin is told.
void tell_ranks(const nvinfer1::IPluginV3OneBuild& build, std::span<const Type> in);

/// By a creator of either kind; null where it gives nullptr. The result is runnable.
std::unique_ptr<nvinfer1::IPluginV3> create_plugin(nvinfer1::IPluginCreatorInterface& creator,
                                                   const char* name,
                                                   const nvinfer1::PluginFieldCollection& fields,
                                                   nvinfer1::TensorRTPhase phase);
/// The fields that createPlugin() of such a creator understands.
const nvinfer1::PluginFieldCollection* field_names(nvinfer1::IPluginCreatorInterface& creator);

} // namespace ingot::api
