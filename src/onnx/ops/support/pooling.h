// SPDX-License-Identifier: Apache-2.0
// The attributes that pooling operators share.
#pragma once

#include "onnx/ops/support/spatial.h"

namespace ingot::onnx {

/// The pooling that a node's attributes describe, for an input with these spatial sizes.
ops::Pool pool_attributes(const NodeContext& c, const Dims& spatial, std::string fn);

} // namespace ingot::onnx
