// SPDX-License-Identifier: Apache-2.0
// What rules about views share.
#pragma once

#include "ir/dim.h"
#include "onnx/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ingot::slim {

struct Context;
using Axes = std::vector<int64_t>;

/// A constant list with which Reshape makes `to` of `from`: numbers, 0 where the size is that of
/// the same axis, and -1 once. Sizes may be 0 at run time, so -1 stands beside numbers only.
std::optional<Axes> reshape_list(const Dims& from, const Dims& to);
/// The permutation of a Transpose, also where it says none.
std::optional<Axes> permutation(const Context& c, const onnx::Node& n);

} // namespace ingot::slim
