// SPDX-License-Identifier: Apache-2.0
// Fixes input sizes before import.
#pragma once

#include "ir/profile.h"
#include "onnx/model.h"

namespace ingot::onnx {

/// Writes the sizes that all profiles fix (min == max) into the types of the inputs, wherever their
/// names occur there. check_profile() reports ranges that do not fit.
void fix_input_sizes(Model& model, const std::vector<Profile>& profiles);

} // namespace ingot::onnx
