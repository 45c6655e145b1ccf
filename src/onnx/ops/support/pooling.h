// SPDX-License-Identifier: Apache-2.0
// The attributes shared by pooling operators.
#pragma once

#include "onnx/ops/support/spatial.h"

namespace ingot::onnx {

/// The pooling described by a node's attributes, for an input with these spatial sizes.
ops::Pool pool_attributes(const NodeContext& c, const Dims& spatial, std::string fn);

} // namespace ingot::onnx
