// SPDX-License-Identifier: Apache-2.0
// Inputs that a run may leave out: since IR version 4, an initializer with an input's name is the
// input's default.
#pragma once

#include "onnx/model.h"

#include <span>
#include <string>

namespace ingot::onnx {

/// Makes inputs of these names, which an import takes for constants otherwise: moves their
/// initializers to Model::input_defaults. A name whose initializer is there already stays. Errors:
/// InvalidArgument for a name without a default, or one that does not fit its input; Unsupported.
void make_optional(Model& model, std::span<const std::string> names);

} // namespace ingot::onnx
