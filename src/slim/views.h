// SPDX-License-Identifier: Apache-2.0
// Shared by the rules about views.
#pragma once

#include "ir/dim.h"
#include "onnx/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ingot::slim {

struct Context;
using Axes = std::vector<int64_t>;

/// A constant list with which Reshape turns `from` into `to`: constants, 0 where the size equals
/// that of the same axis, and at most one -1. Sizes may be 0 at run time, so -1 only appears beside
/// constants.
std::optional<Axes> reshape_list(const Dims& from, const Dims& to);
/// The permutation of a Transpose; the reversed axes when it has none.
std::optional<Axes> permutation(const Context& c, const onnx::Node& n);

} // namespace ingot::slim
