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
void add_halo_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch);
Emitted emit_halo_conv(const ConvShape& s, const Arch& arch, const ConvHalo& parameters,
                       int variant);

} // namespace ingot::kernels
