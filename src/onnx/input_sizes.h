// SPDX-License-Identifier: Apache-2.0
// Sizes of a model's inputs that are known before it is imported.
#pragma once

#include "ir/profile.h"
#include "onnx/model.h"

namespace ingot::onnx {

/// Writes the sizes that all profiles fix (min == max) into the inputs' types, wherever their names
/// occur there. What does not fit an input is left to check_profile().
void fix_input_sizes(Model& model, const std::vector<Profile>& profiles);

} // namespace ingot::onnx
