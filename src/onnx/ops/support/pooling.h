// SPDX-License-Identifier: Apache-2.0
// Shared by pooling operators: attributes and windows.
#pragma once

#include "onnx/ops/support/spatial.h"

namespace ingot::onnx {

/// The pooling described by a node's attributes, for an input with these spatial sizes.
ops::Pool pool_attributes(const NodeContext& c, const Dims& spatial, std::string fn);
/// x with windows over all spatial axes, filled with `padding` at the border:
/// [N,C,positions...,taps...].
Value pool_windows(ingot::Graph& g, const ops::Pool& p, Value x, double padding);
/// The axes of the taps that pool_windows appends, for n spatial axes.
std::vector<int64_t> tap_axes(size_t n);

} // namespace ingot::onnx
