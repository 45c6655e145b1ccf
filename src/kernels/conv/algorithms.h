// SPDX-License-Identifier: Apache-2.0
// The algorithms for convolutions: each lists its tactics with their costs, and emits launches.
#pragma once

#include "kernels/contraction/mma.h"
#include "kernels/contraction/wgmma.h"
#include "kernels/conv/conv_shape.h"

namespace ingot::kernels {

/// By wgmma, where TMA can fetch the windows: groups that fill half a slab; steps between windows
/// for windows of one element, pairs of columns, or those that window_runs.h makes so. A tile
/// belongs to one group.
struct ConvWgmma : WgmmaSplit {
    static constexpr std::string_view pattern = "conv_wgmma_{tile}_s{splits}";
};
void add_wgmma_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, bool tf32);
Emitted emit_wgmma_conv(const ConvShape& s, const Arch& arch, const ConvWgmma& parameters,
                        int variant);

/// Depthwise: any element types and strides.
struct ConvDepthwise {
    static constexpr std::string_view pattern = "conv_depthwise_w{wide}";
    int wide = 1; // adjacent results of a thread
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("wide", self.wide);
    }
};
/// Depthwise: aligned channels of f16, bf16 or f32 in a plane. A block makes rows x columns results
/// of some channels, a thread `wide` adjacent ones for `vec` channels.
struct ConvStrip {
    static constexpr std::string_view pattern =
        "conv_strip_{rows}x{columns}x{channels}_v{vec}w{wide}";
    int rows = 1, columns = 1, channels = 8;
    int vec = 1, wide = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("rows", self.rows);
        field("columns", self.columns);
        field("channels", self.channels);
        field("vec", self.vec);
        field("wide", self.wide);
    }
};
void add_depthwise(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch);
Emitted emit_depthwise(const ConvShape& s, const ConvDepthwise& parameters);
Emitted emit_strip(const ConvShape& s, const ConvStrip& parameters);

/// Up to four channels in f16, bf16 or as TF32, on tensor cores of any GPU. A block makes rows x
/// width positions of some columns at a time.
struct ConvStem {
    static constexpr std::string_view pattern = "conv_stem_{rows}x{width}x{columns}";
    int rows = 0, width = 0, columns = 0;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("rows", self.rows);
        field("width", self.width);
        field("columns", self.columns);
    }
};
void add_stem_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, bool tf32);
Emitted emit_stem_conv(const ConvShape& s, const Arch& arch, const ConvStem& parameters);

} // namespace ingot::kernels
