// SPDX-License-Identifier: Apache-2.0
// OnnxModel: nodes of ONNX Runtime's graph as a model in ONNX's own form, for Ingot's parser. Large
// constants stay where ONNX Runtime has them.
#pragma once

#include "plugins/onnxruntime/graph.h"

#include <map>
#include <span>
#include <string>

namespace ingot::ort {

struct OnnxModel {
    std::string bytes; // of a ModelProto
    /// Initializers without data in `bytes`; they belong to the graph that the model was made of.
    std::map<std::string, TensorView> weights;
    /// What stands for values by name: inputs of the model in the order of their first use.
    std::vector<std::string> inputs;
};

struct OnnxModelRequest {
    std::span<const OrtNode* const> nodes; // in an order in which they can run
    std::vector<const OrtValueInfo*> outputs;
    bool value_types = false; // say the type of every value
    /// Put all constants into the bytes: for a file that others read.
    bool self_contained = false;
};
/// Values that the nodes read, that none of them computes, and that are no constants become inputs.
/// Errors: Unsupported naming node and attribute.
OnnxModel onnx_model(const Host& host, const OrtGraph* graph, const OnnxModelRequest& request);

} // namespace ingot::ort
