// SPDX-License-Identifier: Apache-2.0
// Preparation of the model before the rules, and completion after them.
#pragma once

#include "slim/analysis.h"
#include "slim/slim.h"

namespace ingot::slim {

/// A copy of the model that rules may edit: bodies unshared, names unique, weights aligned,
/// initializers removed from the inputs (unless kept), input sizes as requested.
onnx::Model prepared(const onnx::Model& model, const SlimOptions& options);

/// Records the types of the main graph's tensors; with `outputs` also the sizes of graph outputs.
void write_types(onnx::Model& model, const Analysis& analysis, bool outputs);

} // namespace ingot::slim
