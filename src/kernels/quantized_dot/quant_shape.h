// SPDX-License-Identifier: Apache-2.0
// A product with a quantised weight, as its algorithms see it.
#pragma once

#include "kernels/contraction/contraction.h"

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

} // namespace ingot::kernels
