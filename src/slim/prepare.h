// SPDX-License-Identifier: Apache-2.0
// What is done to a model once, before and after the rules.
#pragma once

#include "slim/facts.h"
#include "slim/slim.h"

namespace ingot::slim {

/// A copy of the model that rules may edit: bodies unshared, names unique, weights aligned,
/// initializers no inputs (unless they are kept), input sizes as asked for.
onnx::Model prepared(const onnx::Model& model, const SlimOptions& options);

/// Writes down the types of the main graph's tensors; with `outputs` also sizes of graph outputs.
void write_types(onnx::Model& model, const Facts& facts, bool outputs);

} // namespace ingot::slim
