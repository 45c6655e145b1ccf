// SPDX-License-Identifier: Apache-2.0
// A rule of quantized_products: bytes that are dequantised and quantised alike stay bytes.
#pragma once

#include "ir/rewrite.h"

namespace ingot::plan {

/// A quantisation of values that were dequantised with the same constant scale and zero point, and
/// then at most moved or compared (views, slices, concatenations, max pooling), becomes these steps
/// on the narrow elements. Between, values may have been 16-bit floats. nullopt for other nodes.
std::optional<Values> same_bytes(Rewriter& r, const Node& n, std::span<const Value> in);

} // namespace ingot::plan
