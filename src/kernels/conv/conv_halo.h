// SPDX-License-Identifier: Apache-2.0
// The algorithm of conv_halo.cuh.
#pragma once

#include "kernels/conv/conv_shape.h"

namespace ingot::kernels {

/// By wgmma, in 16 bits, one group, windows without steps between them: the weights of `columns`
/// results stay in shared memory, and inputs are fetched once for all kernel positions. A tile is a
/// square of results or a strip of whole rows.
struct ConvHalo {
    static constexpr std::string_view pattern = "conv_halo_{tile}_{columns}";
    std::string tile;
    int columns = 64;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("tile", self.tile);
        field("columns", self.columns);
    }
};
/// Whether TMA can fetch the inputs under a tile with their halo, for wgmma: 16 bits, one group,
/// whole vectors of channels, windows without steps between them over the axes of images or of one
/// volume.
bool fetches_halos(const ConvShape& s, const Arch& arch);
/// Clocks that products of 64 rows and 16 channels take, where the tensor cores alone take 32 for
/// 64 columns; fewer columns still read all of the rows.
double halo_product_clocks(int64_t columns);
void add_halo_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch);
Emitted emit_halo_conv(const ConvShape& s, const Arch& arch, const ConvHalo& parameters,
                       int variant);

} // namespace ingot::kernels
