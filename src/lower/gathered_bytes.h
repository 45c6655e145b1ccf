// SPDX-License-Identifier: Apache-2.0
// A rule of quantized_products and integer_products: rows of a quantised table are gathered before
// they are dequantised.
#pragma once

#include "ir/rewrite.h"

namespace ingot::plan {

/// A gather of a constant of bytes or f8 that one scale dequantises (an embedding) gathers the
/// narrow elements, and the result is dequantised. nullopt for other nodes.
std::optional<Values> gathered_bytes(Rewriter& r, const Node& n, std::span<const Value> in);

} // namespace ingot::plan
