// SPDX-License-Identifier: Apache-2.0
// Products of few rows by tiles that TMA loads and the tensor cores multiply (9.0 and later), with
// weights of 4, 8 or 16 bits.
#pragma once

#include "kernels/contraction/normed.h"
#include "kernels/quantized_dot/quant_shape.h"

namespace ingot::kernels {

/// The parameters of each algorithm by tiles.
struct TileShare {
    int share = 2; // warps that share the depth of a tile
    int blocks_per_sm = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("share", self.share);
        field("blocks_per_sm", self.blocks_per_sm);
    }
};
struct TileChoice {
    TileShare parameters;
    double cost_us = 0;
};
/// None where tiles do not run. `norm`: of the rows, before the product; may be null.
std::vector<TileChoice> tile_choices(const QuantShape& s, const RowNorm* norm, const Arch& arch);

/// The choices as tactics of an algorithm P, whose parameters are a TileShare.
template <class P>
void add_tile_tactics(std::vector<Tactic>& out, const QuantShape& s, const RowNorm* norm,
                      const Arch& arch) {
    for (const TileChoice& c : tile_choices(s, norm, arch)) {
        out.push_back(make_tactic(P{c.parameters}, c.cost_us));
    }
}
Emitted emit_tiles(const QuantShape& s, const RowNorm* norm, const TileShare& parameters,
                   const Arch& arch);

} // namespace ingot::kernels
