// SPDX-License-Identifier: Apache-2.0
// Rules of quantized_products: products of two dequantised f8e4m3 operands.
#pragma once

#include "ir/rewrite.h"

namespace ingot::plan {

/// A dot or conv of operands that are f8e4m3 times a scale becomes one of f8e4m3 with sums in f32,
/// and a map that multiplies them by both scales; a convolution of few channels one of f16, without
/// rounding. A scale is one number or, along an axis that the
/// results keep, a vector; it need not be constant. nullopt for zero points other than 0, blocks,
/// and shapes that gain nothing: sums of few products, few channels.
std::optional<Values> f8_product(Rewriter& r, const Node& n, std::span<const Value> in);

/// For other convolutions of such operands: the constant weight becomes floats, once and not in
/// each run.
std::optional<Values> float_weight(Rewriter& r, const Node& n, std::span<const Value> in);

} // namespace ingot::plan
