// SPDX-License-Identifier: Apache-2.0
// Raising the opset of a model, for operators that only later opsets have.
#pragma once

#include "onnx/model.h"

namespace ingot {

/// Converts the model from an opset of the default domain >= 13 to `wanted`, at most 21, by
/// rewriting changed operators (since 18, reductions take their axes as an input and Split its
/// number of parts). Returns a model at or above `wanted` unchanged. Errors: Unsupported naming the
/// node whose operator changed its meaning, and for opsets below 13.
onnx::Model raised_opset(const onnx::Model& model, int64_t wanted);

} // namespace ingot
