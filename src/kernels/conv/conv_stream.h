// SPDX-License-Identifier: Apache-2.0
// The algorithm of conv_stream.cuh.
#pragma once

#include "kernels/conv/conv_shape.h"

namespace ingot::kernels {

/// By wgmma, in 16 bits, one group, windows without steps between them over two axes of images or
/// three of one volume: inputs are fetched once for the kernel positions of a plane, weights again
/// for each tile, which has 16 x 8 results (`rows` 128) or 16 x 16 (256), of `columns` channels.
struct ConvStream {
    static constexpr std::string_view pattern = "conv_stream_{rows}x{columns}";
    int rows = 256, columns = 64;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("rows", self.rows);
        field("columns", self.columns);
    }
};
void add_stream_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch);
Emitted emit_stream_conv(const ConvShape& s, const Arch& arch, const ConvStream& parameters,
                         int variant);

} // namespace ingot::kernels
