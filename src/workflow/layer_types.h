// SPDX-License-Identifier: Apache-2.0
// Layers that compute in another type than the build does.
#pragma once

#include "ir/graph.h"

#include <string>

namespace ingot {

/// How strictly the types of layers are taken, as trtexec's --precisionConstraints.
enum class LayerTypeRule { None, Prefer, Obey };

struct LayerTypes {
    /// "NAME:TYPE,...", as trtexec spells them: what layers compute in, and the types of their
    /// results. NAME is an ONNX node's, or "*" for all layers that are not named; TYPE is fp32,
    /// fp16 or bf16.
    std::string precisions;
    std::string output_types;
    LayerTypeRule rule = LayerTypeRule::None; // None: both lists are ignored
};

/// The graph in which the layers that are to compute, or give results, in fp32 keep doing so when
/// the rest is converted to `build`. What cannot be had (an unknown layer, a type that the build
/// does not compute in) is an error under Obey, else a warning. Errors: InvalidArgument.
Graph hold_layer_types(const Graph& g, const LayerTypes& types, DType build);

} // namespace ingot
