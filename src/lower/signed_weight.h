// SPDX-License-Identifier: Apache-2.0
// Constant weights of products as signed bytes.
#pragma once

#include "lower/dequantised.h"

namespace ingot::plan {

/// The elements of a constant zero point, at least one; nullopt when it is not constant.
std::optional<std::vector<int64_t>> zeros_of(const Graph& g, const Dequantised& x);

bool all_equal(const std::vector<int64_t>& v, int64_t x);

/// A constant weight as signed bytes, and its sums per position of the axis.
struct SignedWeight {
    Value v;
    std::vector<int64_t> sums;
    std::vector<int64_t> zeros; // zero points of v, one or one per position; empty where all are 0
};

/// Whether zero points stay where signed bytes cannot hold the weight without them.
enum class ZeroPoints { Subtracted, Kept };

/// A constant weight less its zero points, if signed bytes hold that; else, as `zero_points` says,
/// less a number, with the zero points that are left. nullopt for other weights. `axis`: that of
/// its sums.
std::optional<SignedWeight> signed_weight(Graph& g, const Dequantised& w, int64_t axis,
                                          ZeroPoints zero_points);

} // namespace ingot::plan
