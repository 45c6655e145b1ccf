// SPDX-License-Identifier: Apache-2.0
// Adapts IPluginV2DynamicExt to IPluginV3: the library runs one generation only.
#pragma once

#include "NvInfer.h"

#include <memory>

namespace ingot::api {

/// Errors: Unsupported for a plugin that is not an IPluginV2DynamicExt.
nvinfer1::IPluginV2DynamicExt& dynamic_plugin(nvinfer1::IPluginV2& plugin);
/// Takes the plugin, which is destroyed with the result.
std::unique_ptr<nvinfer1::IPluginV3> adapt_plugin(nvinfer1::IPluginV2DynamicExt& plugin);
/// The plugin inside an adapter of adapt_plugin.
nvinfer1::IPluginV2& adapted_plugin(nvinfer1::IPluginV3& plugin);

} // namespace ingot::api
