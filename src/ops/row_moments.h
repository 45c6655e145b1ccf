// SPDX-License-Identifier: Apache-2.0
// Statistics of rows, chunk by chunk, and the layer norm that takes them as an operand: what writes
// rows can find them in passing, and what reads the rows merges them.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// x of floats, [.., n] -> f32 (f64 for f64) [.., n / chunk, 2]: for each `chunk` adjacent elements
/// of the last axis their mean, and the sum of the squares of their distances from it. n is known
/// and a multiple of the chunk. Only moment_norm may read them, as views of the same rows: a kernel
/// may leave out moments that cost more than they save, and moment_norm then finds its own
/// (kernels/common/stored_moments.h).
struct RowMoments {
    int64_t chunk = 32;
    static void fields(auto& s, auto&& f) { f("chunk", s.chunk); }
};
Value row_moments(Graph& g, RowMoments a, Value x);

/// (x [.., n], the result of row_moments for x) -> (x - mean) / sqrt(variance + epsilon) of each
/// row, in x's type: layer_norm over the last axis without a scale. A third operand is the result
/// itself, from another moment_norm of the same operands: a kernel may read that one instead, and
/// by the rule of kernels/common/stored_moments.h has to where no moments are stored.
struct MomentNorm {
    double epsilon = 1e-5;
    static void fields(auto& s, auto&& f) { f("epsilon", s.epsilon); }
};
Value moment_norm(Graph& g, MomentNorm a, Value x, Value moments, Value result = {});

extern const OpDef row_moments_def, moment_norm_def;

} // namespace ingot::ops
