// SPDX-License-Identifier: Apache-2.0
// Analysis of an ONNX model by importing it: the type of each tensor, the contents of shapes and of
// arithmetic on them, and which tensors are equal.
#pragma once

#include "ir/graph.h"
#include "onnx/model.h"

#include <string>
#include <unordered_map>

namespace ingot::slim {

struct TensorInfo {
    Type type;
    /// Contents, when known: sizes that may be symbolic.
    HostRef host;
    /// Tensors of one ONNX graph with the same number are equal, bit for bit.
    uint32_t number = 0;
};

/// Tensors that depend on an unknown operator have no entry.
class Analysis {
public:
    /// Imports the model. `keep_inputs`: initializers that are also graph inputs are treated as
    /// inputs of unknown value. Errors: InvalidModel when it is malformed.
    explicit Analysis(const onnx::Model& model, bool keep_inputs = false);
    /// Null when nothing is known.
    const TensorInfo* find(const onnx::Graph& graph, const std::string& name) const;

private:
    using GraphInfo = std::unordered_map<std::string, TensorInfo>;
    std::unordered_map<const onnx::Graph*, GraphInfo> graphs_;
};

/// Value numbering of a graph: equal numbers mean equal contents.
std::vector<uint32_t> number_values(const Graph& g);

} // namespace ingot::slim
