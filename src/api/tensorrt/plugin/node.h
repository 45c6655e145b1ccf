// SPDX-License-Identifier: Apache-2.0
// Model nodes that application code implements: a plugin named as the operator, or a kernel
// registered for it.
#pragma once

#include "api/tensorrt/network/network.h"
#include "ops/plugin.h"

namespace ingot::api {

struct CustomNode {
    nv::IPluginCreatorInterface* creator = nullptr; // else the kernel
    std::optional<SourceKernel> source;
};
/// The attributes plugin_version (else "1") and plugin_namespace (else "") select the creator.
std::optional<CustomNode> find_custom(const onnx::Node& n, nv::IPluginRegistry& registry);
/// Adds the layer with the node's inputs, in order. The attribute
/// tensorrt_plugin_shape_input_indices lists the shape inputs. Errors: InvalidArgument,
/// Unsupported; InvalidModel for attributes that do not fit.
LayerBase& append_custom(Network& network, const onnx::Node& n, const CustomNode& custom,
                         std::vector<NetworkTensor*> inputs, const std::string& name);

} // namespace ingot::api
