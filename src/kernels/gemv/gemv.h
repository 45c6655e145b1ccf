// SPDX-License-Identifier: Apache-2.0
// What the ways for products of few rows share.
#pragma once

#include "kernels/contraction/tactics.h"

namespace ingot::kernels {

constexpr int64_t most_gemv_rows = 8;

/// Rows that a kernel is made for: 1, 2, 4 or 8.
int gemv_rows(const Contraction& c);
/// Whether chunks of `n` elements along the depth are dense and aligned.
bool chunked(const Operand& o, const Shape& batch, const Shape& outer, const Shape& depth,
             int64_t n);
/// Elements of b in 16 bytes.
inline int64_t gemv_chunk(const Contraction& c) {
    return 128 / bit_width(c.b.dtype);
}

/// Columns through rings in shared memory that the copy engine fills (9.0 and later).
void add_ring_tactics(std::vector<Tactic>& out, const Contraction& c, bool swap, const Arch& arch);
Emitted emit_ring(const Contraction& c, const Tactic& t, const Arch& arch);

/// Rows that are normalised over the depth before they are multiplied.
struct RowNorm {
    bool rms = false;
    double epsilon = 0;
    std::vector<Operand> vectors; // the scale, then perhaps a bias, as they broadcast to the rows
    bool constant = true;         // all of them
};
/// Likewise; every block normalises the rows.
void add_normed_ring_tactics(std::vector<Tactic>& out, const Contraction& c, const RowNorm& norm,
                             const Arch& arch);
Emitted emit_normed_ring(const Contraction& c, const RowNorm& norm, const Tactic& t,
                         const Arch& arch);

} // namespace ingot::kernels
