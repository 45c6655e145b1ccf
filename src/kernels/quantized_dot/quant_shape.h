// SPDX-License-Identifier: Apache-2.0
// A product with a quantised weight, for its algorithms.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// A scale or zero point: its strides between columns and between blocks of the depth.
struct Parameter {
    Operand operand;
    bool constant = false;
    int64_t column_step = 0;
    int64_t block_step = 0;
};

/// A contraction with a quantised B; or, without scales, one of 16 bits.
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

/// HEAD_PAIRS of quant_weights.cuh: the pairs of a head where columns are heads, else 0.
inline int64_t head_pairs(const Contraction& c) {
    return c.heads ? c.heads->pairs : 0;
}

/// Defines for quant_weights.cuh.
std::string quant_defines(const QuantShape& s);

} // namespace ingot::kernels
