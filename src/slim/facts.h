// SPDX-License-Identifier: Apache-2.0
// Facts: what the importer knows of each tensor of an ONNX model: its type, the contents of shapes
// and of the arithmetic on them, and which tensors are equal.
#pragma once

#include "ir/graph.h"
#include "onnx/model.h"

#include <string>
#include <unordered_map>

namespace ingot::slim {

struct Fact {
    Type type;
    /// Contents, where known: sizes that may be symbolic.
    HostRef host;
    /// Tensors of one ONNX graph with the same number are equal, bit for bit.
    uint32_t number = 0;
};

/// Tensors behind an operator that Ingot does not know have no facts.
class Facts {
public:
    /// Imports the model. `keep_inputs`: initializers that are graph inputs too are inputs, whose
    /// values are not known. Errors: InvalidModel when it is malformed.
    explicit Facts(const onnx::Model& model, bool keep_inputs = false);
    /// Null where nothing is known.
    const Fact* find(const onnx::Graph& graph, const std::string& name) const;

private:
    using GraphFacts = std::unordered_map<std::string, Fact>;
    std::unordered_map<const onnx::Graph*, GraphFacts> graphs_;
};

/// Numbers the values of a graph: equal numbers, equal contents.
std::vector<uint32_t> number_values(const Graph& g);

} // namespace ingot::slim
