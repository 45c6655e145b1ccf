// SPDX-License-Identifier: Apache-2.0
// Shared by operators whose results are gated by a sigmoid.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// x * sigmoid(alpha * x)
Value silu(ingot::Graph& g, Value x, double alpha = 1);
/// silu(scale * x), each step in x's type.
Value scaled_silu(ingot::Graph& g, Value x, Value scale);
/// SwiGLU of com.microsoft, by attributes activation_alpha, activation_beta and limit, in f32:
/// gate * sigmoid(alpha * gate) * (up + beta), in the gate's type. With `round_gate`, the gated
/// half is rounded to that type first.
Value swi_glu(const NodeContext& c, Value gate, Value up, bool round_gate);
/// The halves of the last axis of x.
struct Halves {
    Value first;
    Value second;
};
Halves halves_of(ingot::Graph& g, Value x);

} // namespace ingot::onnx
