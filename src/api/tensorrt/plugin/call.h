// SPDX-License-Identifier: Apache-2.0
// Checked calls of plugins. All errors are InvalidArgument or Unsupported and name the plugin's
// method.
#pragma once

#include "NvInfer.h"
#include "api/tensorrt/plugin/size_exprs.h"
#include "ops/plugin.h"

#include <memory>

namespace ingot::api {

/// The parts of a plugin; they live as long as the plugin.
struct PluginParts {
    nvinfer1::IPluginV3OneCore* core = nullptr;
    nvinfer1::IPluginV3OneBuild* build = nullptr; // may be null at run time
    nvinfer1::IPluginV3OneRuntime* runtime = nullptr;
};
PluginParts parts_of(nvinfer1::IPluginV3& plugin, bool needs_build);
/// "plugin 'Clip' version '1'", with its namespace if it has one.
std::string plugin_text(std::string_view name, std::string_view version, std::string_view space);
std::string plugin_text(const nvinfer1::IPluginV3OneCore& core);

/// A clone, to be deleted.
std::unique_ptr<nvinfer1::IPluginV3> clone_of(nvinfer1::IPluginV3& plugin);

/// The result types for these input types; `sizes` receives the data-dependent sizes.
std::vector<Type> plugin_results(const nvinfer1::IPluginV3OneBuild& build, std::span<const Type> in,
                                 std::span<const Dims> shape_inputs, SizeExprs& sizes);

/// Descriptions of operands; unknown sizes are -1.
nvinfer1::PluginTensorDesc plugin_desc(DType dtype, const Shape& shape);
nvinfer1::DynamicPluginTensorDesc fixed_desc(const nvinfer1::PluginTensorDesc& desc);
/// Checks that it supports these types, inputs first, dense and row major.
void check_formats(nvinfer1::IPluginV3OneBuild& build,
                   std::span<const nvinfer1::DynamicPluginTensorDesc> all, size_t inputs);
void configure(nvinfer1::IPluginV3OneBuild& build,
               std::span<const nvinfer1::DynamicPluginTensorDesc> all, size_t inputs);
int64_t workspace_of(const nvinfer1::IPluginV3OneBuild& build,
                     std::span<const nvinfer1::DynamicPluginTensorDesc> all, size_t inputs);
/// The plugin's own tactics, without repeats; empty when it has none.
std::vector<int32_t> tactics_of(nvinfer1::IPluginV3OneBuild& build);

/// Copies the fields from which the plugin can be created again.
void serialize_fields(nvinfer1::IPluginV3OneRuntime& runtime, Plugin& to);

} // namespace ingot::api
