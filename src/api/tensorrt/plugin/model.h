// SPDX-License-Identifier: Apache-2.0
// Models with nodes that the application's own code stands for, imported without a parser: what
// the command does with them. Also the libraries that hold such code.
#pragma once

#include "api/tensorrt/plugin/tactics.h"
#include "onnx/model.h"

namespace ingot::api {

/// Whether the process's registry has a creator, or there is a kernel given as text, for a node of
/// the main graph.
bool has_custom_nodes(const onnx::Model& model);

struct ModelImport {
    bool keep_names = false;
    bool named_weights = false; // for a refit
    bool plugins_first = false; // a plugin named as an operator takes its place
};
/// The graph of such a model, in which other nodes are as the importer makes them. Errors:
/// InvalidModel; Unsupported with all nodes that cannot be imported.
Graph import_with_plugins(const onnx::Model& model, const ModelImport& how, PluginBuild& plugins);

/// Opens a library whose plugins register themselves with the process's registry: as it is loaded,
/// in its initLibNvInferPlugins(), or as IPluginRegistry::loadLibrary() has it. Errors: Io;
/// InvalidArgument for one without plugins.
void open_plugin_library(const std::string& path);

} // namespace ingot::api
