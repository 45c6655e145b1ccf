// SPDX-License-Identifier: Apache-2.0
// Reads a tensor at fractional coordinates, as a weighted sum of gathered neighbours.
#pragma once

#include "ops/ops.h"

#include <span>
#include <vector>

namespace ingot::ops {

/// One neighbour along one axis: an integral coordinate in [0, size) as a float, and its weight.
struct Tap {
    Value index;
    Value weight; // invalid: 1
};
using Taps = std::vector<Tap>;

/// x [lead..., C, sizes...] with `lead` leading axes as rows [product(lead) * product(sizes), C].
Value point_rows(Graph& g, Value x, size_t lead);
/// i64 [lead..., 1, ...] of rank `rank`: the first row of each leading index.
Value lead_base(Graph& g, const Dims& lead, const Dims& sizes, size_t rank);
/// For every combination of one tap per axis: rows gathered and weighted, [points..., C]. Indices,
/// weights and base broadcast to the points' shape.
std::vector<Value> neighbours(Graph& g, Value rows, Value base, const Dims& sizes,
                              std::span<const Taps> axes);
Value sum_of(Graph& g, std::span<const Value> values);
/// [lead..., points..., C] -> [lead..., C, points...]
Value channels_after(Graph& g, Value v, size_t lead);

/// x clamped to [0, size); 0 for NaN.
Value clamp_index(Graph& g, Value x, const Dim& size);
/// The two neighbours of a coordinate; those outside [0, size) have weight 0.
Taps linear_taps(Graph& g, Value coordinate, const Dim& size);

/// Coordinates of one dtype (f32 or f64), one for each axis of `sizes`, each [lead..., points...].
struct Points {
    Values coordinates;
    Dims sizes;
};
/// x [lead..., C, sizes...] at the points, linearly interpolated, 0 outside: [lead..., C,
/// points...] in x's dtype.
Value sample_linear(Graph& g, Value x, size_t lead, const Points& p);

} // namespace ingot::ops
