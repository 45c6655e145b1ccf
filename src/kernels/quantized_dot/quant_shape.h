// SPDX-License-Identifier: Apache-2.0
// A product with a quantised weight, as its ways see it.
#pragma once

#include "kernels/gemv/gemv.h"

namespace ingot::kernels {

/// Scale or zero point: its steps between columns and between blocks of the depth.
struct Parameter {
    Operand operand;
    bool constant = false;
    int64_t column_step = 0;
    int64_t block_step = 0;
};

/// A contraction whose B is quantised; or, without scales, of 16 bits.
struct QuantShape {
    Contraction c;
    bool scaled = true;
    Parameter scale;
    std::optional<Parameter> zero;
    int64_t block = 1; // of the depth
};

/// A contraction with a weight of 16 bits.
inline QuantShape tile_shape(const Contraction& c) {
    QuantShape s;
    s.c = c;
    s.scaled = false;
    s.block = c.k();
    return s;
}

/// What quant_weights.cuh needs to be told.
std::string quant_defines(const QuantShape& s);

/// Tactic::p[0].
constexpr int quant_way_ring = 3;
constexpr int quant_way_normed_ring = 4;

/// Tiles that the copy engine brings and the tensor cores multiply (9.0 and later); tactics have
/// `way` as p[0] and names that begin so. `norm`: of the rows, before they are multiplied; may be
/// null.
void add_tile_tactics(std::vector<Tactic>& out, const QuantShape& s, const RowNorm* norm, int way,
                      std::string_view name, const Arch& arch);
Emitted emit_tiles(const QuantShape& s, const RowNorm* norm, const Tactic& t, const Arch& arch);

} // namespace ingot::kernels
