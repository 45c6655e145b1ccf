// SPDX-License-Identifier: Apache-2.0
// Imports models with plugin nodes without a parser, for the command, and loads plugin libraries.
#pragma once

#include "api/tensorrt/plugin/tactics.h"
#include "onnx/model.h"

namespace ingot::api {

/// Whether a node of the main graph has a creator in the process's registry, or a source kernel.
bool has_custom_nodes(const onnx::Model& model);

struct ModelImport {
    bool keep_names = false;
    bool named_weights = false; // for a refit
    bool plugins_first = false; // a plugin with an operator's name replaces it
};
/// The graph of such a model; other nodes go through the importer. Errors: InvalidModel;
/// Unsupported listing all nodes that cannot be imported.
Graph import_with_plugins(const onnx::Model& model, const ModelImport& how, PluginBuild& plugins);

/// Opens a plugin library. Its plugins register with the process's registry: when it is loaded, in
/// its initLibNvInferPlugins(), or through IPluginRegistry::loadLibrary(). Errors: Io;
/// InvalidArgument for a library without plugins.
void open_plugin_library(const std::string& path);

} // namespace ingot::api
