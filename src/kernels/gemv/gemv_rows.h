// SPDX-License-Identifier: Apache-2.0
// Shared by the algorithms for products of few rows.
#pragma once

#include "kernels/gemv/gemv.h"

namespace ingot::kernels {

constexpr int64_t most_gemv_rows = 8;
/// Warps of a block with pipeline stages that TMA fills.
constexpr int64_t pipeline_warps = 8;

/// The kernel's number of rows: 1, 2, 4 or 8.
int gemv_rows(const Contraction& c);
/// Whether chunks of `n` elements along the depth are dense and aligned.
bool chunked(const Operand& o, const Shape& batch, const Shape& outer, const Shape& depth,
             int64_t n);
/// Elements of b in 16 bytes.
inline int64_t gemv_chunk(const Contraction& c) {
    return 128 / bit_width(c.b.dtype);
}

/// `c` has few rows.
void add_pipelined_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_pipelined(const Contraction& c, const PipelinedGemv& parameters, const Arch& arch);

} // namespace ingot::kernels
