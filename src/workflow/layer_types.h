// SPDX-License-Identifier: Apache-2.0
// Layers that compute in another type than the rest of the build.
#pragma once

#include "ir/graph.h"

#include <string>

namespace ingot {

/// How strictly layer types are applied, as trtexec's --precisionConstraints.
enum class LayerTypeRule { None, Prefer, Obey };

struct LayerTypes {
    /// "NAME:TYPE,...", in trtexec's spelling: the compute types of layers, and the types of their
    /// results. NAME is an ONNX node's, or "*" for all other layers; TYPE is fp32, fp16 or bf16.
    std::string precisions;
    std::string output_types;
    LayerTypeRule rule = LayerTypeRule::None; // None: both lists are ignored
};

/// The graph in which layers that compute, or return results, in fp32 keep doing so when the rest
/// is converted to `build`. An impossible request (an unknown layer, a type other than the build's)
/// is an error under Obey, else a warning. Errors: InvalidArgument.
Graph hold_layer_types(const Graph& g, const LayerTypes& types, DType build);

} // namespace ingot
