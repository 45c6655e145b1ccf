// SPDX-License-Identifier: Apache-2.0
// Raising the opset of a model, for operators that only later opsets have.
#pragma once

#include "onnx/model.h"

namespace ingot {

/// The model under an opset of the default domain from 13 on to `wanted`, at most 21: operators
/// that changed are rewritten (reductions take their axes as an input since 18, Split says how many
/// parts). A model that is there already stays. Errors: Unsupported naming the node where an
/// operator changed its meaning, and for opsets below 13.
onnx::Model raised_opset(const onnx::Model& model, int64_t wanted);

} // namespace ingot
