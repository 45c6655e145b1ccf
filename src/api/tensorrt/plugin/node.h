// SPDX-License-Identifier: Apache-2.0
// Nodes of a model that the application's own code stands for: a plugin of the node's operator
// name, or a kernel registered for the operator.
#pragma once

#include "api/tensorrt/network/network.h"
#include "ops/plugin.h"

namespace ingot::api {

struct CustomNode {
    nv::IPluginCreatorInterface* creator = nullptr; // else the kernel
    std::optional<SourceKernel> source;
};
/// The attributes plugin_version (else "1") and plugin_namespace (else "") choose among creators.
std::optional<CustomNode> find_custom(const onnx::Node& n, nv::IPluginRegistry& registry);
/// Adds the layer; inputs are the node's, in order. The attribute
/// tensorrt_plugin_shape_input_indices says which of them are shape inputs. Errors:
/// InvalidArgument, Unsupported; InvalidModel for attributes that do not fit.
LayerBase& append_custom(Network& network, const onnx::Node& n, const CustomNode& custom,
                         std::vector<NetworkTensor*> inputs, const std::string& name);

} // namespace ingot::api
