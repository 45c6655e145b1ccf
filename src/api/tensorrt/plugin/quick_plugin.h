// SPDX-License-Identifier: Apache-2.0
// Adapts the plugins of impl/NvInferPythonPlugin.h to those that the library runs.
#pragma once

#include "NvInfer.h"
#include "ir/graph.h"

#include <memory>
#include <span>

namespace ingot::api {

/// The plugin itself, if it has the parts that the library runs, else an adapter that owns it.
/// Errors: Unsupported for a plugin whose kernels are compiled ahead of time.
std::unique_ptr<nvinfer1::IPluginV3> runnable_plugin(std::unique_ptr<nvinfer1::IPluginV3> plugin);
/// The application's own plugin.
nvinfer1::IPluginV3& origin_of(nvinfer1::IPluginV3& plugin);
/// Tells an adapted plugin the ranks of its inputs, before getOutputDataTypes().
void tell_ranks(const nvinfer1::IPluginV3OneBuild& build, std::span<const Type> in);

/// Creates a plugin with a creator of either kind; null where the creator returns null. The result
/// is runnable.
std::unique_ptr<nvinfer1::IPluginV3> create_plugin(nvinfer1::IPluginCreatorInterface& creator,
                                                   const char* name,
                                                   const nvinfer1::PluginFieldCollection& fields,
                                                   nvinfer1::TensorRTPhase phase);
/// The fields that such a creator's createPlugin() accepts.
const nvinfer1::PluginFieldCollection* field_names(nvinfer1::IPluginCreatorInterface& creator);

} // namespace ingot::api
