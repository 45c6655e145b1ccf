// SPDX-License-Identifier: Apache-2.0
// The host's side of conv_stem.cuh: convolutions of up to four channels.
#include "kernels/common/expr_text.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/gemm/mma.h"
#include "kernels/gemm/tactics.h"

namespace ingot::kernels {

namespace {

constexpr int64_t down = 8;
constexpr int64_t across = 16;
constexpr int64_t most_depth = 512;

/// `struct Stem` of conv_stem.cuh.
struct StemArg {
    int64_t tiles_w = 0, tiles_h = 0, tiles = 0, run = 0, depth = 0, pitch = 0, rows = 0,
            blocks_n = 0;
};

int64_t round_up(int64_t v, int64_t n) {
    return div_up(v, n) * n;
}

int columns(const ConvShape& s, const Contraction& c) {
    return vector_columns(c) && s.results > 32 ? 64 : 32;
}

StemArg stem_of(const ConvShape& s, int bn) {
    const WindowArg& w = s.window;
    StemArg a;
    a.tiles_w = div_up(w.out[2], across);
    a.tiles_h = div_up(w.out[1], down);
    a.tiles = a.tiles_w * a.tiles_h * s.images;
    a.run = round_up(w.kernel[2] * w.channels, 8);
    a.depth = round_up(w.kernel[1] * a.run, 16);
    a.pitch = round_up((across - 1) * w.stride[2] * w.channels + a.run, 2);
    a.rows = (down - 1) * w.stride[1] + w.kernel[1];
    a.blocks_n = div_up(s.results, bn);
    return a;
}

int64_t shared_bytes(const StemArg& a, int bn) {
    int64_t panels = int64_t{4} * 16 * (bn + 8) * 4;
    return panels + 2 * (bn * (a.depth + 8) + a.rows * a.pitch);
}

bool runs(const ConvShape& s, const Contraction& c) {
    const WindowArg& w = s.window;
    bool types = s.x.dtype == s.w.dtype && (s.x.dtype == DType::F16 || s.x.dtype == DType::BF16);
    bool flat = w.in[0] == 1 && w.kernel[0] == 1 && w.low[0] == 0 && w.out[0] == 1;
    bool plain = s.groups == 1 && w.dilation[1] == 1 && w.dilation[2] == 1 && s.taps() > 1;
    if (!types || !flat || !plain || w.channels > 4 || w.stride[2] * w.channels % 2 != 0 ||
        s.tap_step != w.channels || (w.channels > 1 && s.w.view.strides[1] != 1)) {
        return false;
    }
    constexpr int64_t most = 30000;
    StemArg a = stem_of(s, columns(s, c));
    return a.depth <= most_depth && shared_bytes(a, columns(s, c)) <= int64_t{96} * 1024 &&
           w.in[1] + w.low[1] < most && w.in[2] + w.low[2] < most &&
           a.tiles < (int64_t{1} << 31) / a.blocks_n;
}

} // namespace

void add_stem_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, int way) {
    Contraction c = window_contraction(s);
    if (c.k() == 0 || !runs(s, c)) {
        return;
    }
    int bn = columns(s, c);
    StemArg a = stem_of(s, bn);
    // Clocks of a tile when several blocks share an SM: copies, products, stores.
    double clocks = 300 + 2.2 * static_cast<double>(a.depth) * bn / 64 +
                    0.14 * static_cast<double>(a.rows * a.pitch) + 900.0 * bn / 64;
    double rounds = static_cast<double>(div_up(a.tiles * a.blocks_n, arch.sms));
    constexpr double launch_us = 4.5; // with the weights
    double us = launch_us + rounds * clocks / (arch.clock_ghz * 1e3);
    double bytes = 2.0 * static_cast<double>(s.x.view.count() + s.out.view.count());
    us = std::max(us, 2 + bytes / (arch.dram_gbs * 0.8e3));
    out.push_back({"conv_stem", {way, bn}, us});
}

Emitted emit_stem_conv(const ConvShape& s, const Arch& arch, const Tactic& tactic) {
    int bn = tactic.p[1];
    Contraction c = window_contraction(s);
    StemArg a = stem_of(s, bn);
    StoreText t = store_text(c, vector_columns(c) ? 8 : 1);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define IN ", c_type(s.x.dtype), "\n#define MMA(c, a, b0, b1) ",
            s.x.dtype == DType::F16 ? "mma_f16" : "mma_bf16", "((float*)(c), a, b0, b1)\n",
            "#define BN ", bn, "\n#define CHANNELS ", s.window.channels, "\n", t.defines);
    l.program.body =
        str(device_file("contract"), t.functions, device_file("store_tile"), device_file("window"));
    l.program.family = "conv_stem";
    l.entry = "conv_stem";
    l.block = 128;
    l.shared = shared_bytes(a, bn);
    // As many blocks as share the SMs, each with all of its columns' weights.
    int64_t resident = std::clamp<int64_t>(arch.shared_per_sm / (l.shared + 1024), 1, 4) * arch.sms;
    l.grid = {std::min(a.tiles, div_up(resident, a.blocks_n)) * a.blocks_n, 1, 1};
    l.args.pointer(s.x).pointer(s.w).pointer(s.out).i32(s.w_constant ? 1 : 0);
    add_window(l.args, s.window);
    l.args.value(a);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
