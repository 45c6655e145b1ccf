// SPDX-License-Identifier: Apache-2.0
// The host side of conv_stem.cuh: convolutions of up to four channels.
#include "kernels/common/expr_text.h"
#include "kernels/contraction/persistent.h"
#include "kernels/conv/algorithms.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ingot::kernels {

namespace {

constexpr int64_t warps = 4;
constexpr int64_t across = 16;
constexpr int64_t most_depth = 512;
constexpr int64_t vector = 8; // elements of a run

/// `struct Stem` of conv_stem.cuh.
struct StemArg {
    int64_t tiles_w = 0, tiles_h = 0, tiles = 0, run = 0, depth = 0, pitch = 0, rows = 0,
            blocks_n = 0, vectors = 0;
    uint64_t by_run = 0, by_vectors = 0;
};

/// The tile of a block: columns, and rows of results per warp.
struct StemTile {
    int columns = 32;
    int rows = 1;
};

/// Pixels of a channel that are read at once.
int64_t pixels(const ConvShape& s) {
    return chunk_elements(s.x.dtype);
}

/// Elements of a pixel in shared memory: 16 bits are read in pairs, at which windows must begin.
int64_t pixel_elements(const ConvShape& s) {
    int64_t channels = s.window.channels;
    bool odd = bit_width(s.x.dtype) == 16 && s.window.stride[2] * channels % 2 != 0;
    return channels + (odd ? 1 : 0);
}

int64_t element_bytes(const ConvShape& s) {
    return bit_width(s.x.dtype) / 8;
}

uint64_t inverse(int64_t n) {
    return static_cast<uint64_t>(div_up(int64_t{1} << 32, n));
}

StemArg stem_of(const ConvShape& s, const StemTile& t) {
    const WindowArg& w = s.window;
    int64_t down = warps * t.rows;
    StemArg a;
    a.tiles_w = div_up(w.out[2], across);
    a.tiles_h = div_up(w.out[1], down);
    a.tiles = a.tiles_w * a.tiles_h * s.images;
    int64_t pixel = pixel_elements(s);
    a.run = round_up(w.kernel[2] * pixel, vector);
    a.depth = round_up(w.kernel[1] * a.run, 32 / element_bytes(s));
    a.pitch = round_up((across - 1) * w.stride[2] * pixel + a.run, 2);
    a.rows = (down - 1) * w.stride[1] + w.kernel[1];
    a.blocks_n = div_up(s.results, t.columns);
    a.vectors = (div_up(a.pitch, pixel) + 2 * (pixels(s) - 1)) / pixels(s);
    a.by_run = inverse(a.run);
    a.by_vectors = inverse(a.vectors);
    return a;
}

/// Whether sums go through the epilogue in registers.
bool in_registers(const Contraction& c) {
    PersistentEpilogue e = persistent_epilogue(c);
    return e.possible && e.full < 0;
}

int64_t shared_bytes(const ConvShape& s, const StemTile& t) {
    StemArg a = stem_of(s, t);
    bool through = bit_width(s.out.dtype) != 32 || !in_registers(window_contraction(s));
    int64_t panels = through ? warps * 16 * (t.columns + 8) * 4 : 0;
    return panels + element_bytes(s) * (a.depth * (t.columns + 8) + a.rows * a.pitch);
}

/// Whether rows of a channel can be read in vectors of pixels.
bool plane_vectors(const ConvShape& s) {
    const WindowArg& w = s.window;
    constexpr int64_t most = int64_t{1} << 30;
    int64_t far = w.in[1] * std::abs(w.step[1]) + w.channels * std::abs(w.step_c);
    int64_t n = pixels(s);
    return far < most && w.step[2] == 1 && w.in[2] % n == 0 && s.x.view.offset % n == 0 &&
           w.step_n % n == 0 && w.step[1] % n == 0 && w.step_c % n == 0;
}

/// Whether the weights of 8 results can be read at once.
bool weight_vectors(const ConvShape& s, const Contraction& c) {
    return s.results % vector == 0 && c.columns.b[0] == 1 && c.depth.b[0] % vector == 0 &&
           s.w.view.offset % vector == 0;
}

bool runs(const ConvShape& s, const Contraction& c, bool tf32) {
    const WindowArg& w = s.window;
    bool single = s.x.dtype == DType::F32 && tf32;
    bool types = s.x.dtype == s.w.dtype && (is_half(s.x.dtype) || single);
    bool flat = w.in[0] == 1 && w.kernel[0] == 1 && w.low[0] == 0 && w.out[0] == 1;
    bool plain = s.groups == 1 && w.dilation[1] == 1 && w.dilation[2] == 1 && s.taps() > 1;
    constexpr int64_t most = 30000;
    int64_t far = std::abs(c.depth.b[0]) * c.k() + std::abs(c.columns.b[0]) * s.results;
    return types && flat && plain && far < (int64_t{1} << 30) && w.channels <= 4 &&
           s.tap_step == w.channels * c.depth.b[0] && w.in[1] + w.low[1] < most &&
           w.in[2] + w.low[2] < most;
}

bool fits(const ConvShape& s, const StemTile& t) {
    StemArg a = stem_of(s, t);
    return a.depth <= most_depth && shared_bytes(s, t) <= int64_t{96} * 1024 &&
           a.tiles < (int64_t{1} << 31) / a.blocks_n;
}

double stem_us(const ConvShape& s, const StemTile& t, const Arch& arch) {
    StemArg a = stem_of(s, t);
    double bytes = static_cast<double>(element_bytes(s)) *
                   static_cast<double>(s.x.view.count() + s.out.view.count());
    double dram = bytes / (arch.dram_gbs * 0.8e3);
    auto depth = static_cast<double>(a.depth);
    double results = static_cast<double>(warps * t.rows * across) * t.columns;
    // Clocks: before and after the tiles, for a tile alone, and for its work when several blocks
    // share an SM.
    double start = 1200 + depth * t.columns / 40;
    double alone = 900 + 8.0 * depth + results / 6;
    // Half as many elements pass shared memory and the tensor cores in a clock as of 16 bits.
    double slower = static_cast<double>(element_bytes(s)) / 2;
    double work = 100 + slower * (depth * t.columns * t.rows / 64 +
                                  0.14 * static_cast<double>(a.rows * a.pitch) + results / 10);
    int64_t blocks = a.tiles * a.blocks_n;
    auto on_sm = static_cast<double>(div_up(blocks, arch.sms));
    auto resident = static_cast<double>(
        std::clamp<int64_t>(arch.shared_per_sm / (shared_bytes(s, t) + 1024), 1, 4));
    double clocks =
        start + std::max(std::ceil(on_sm / resident) * alone, on_sm * work) + 0.3 * on_sm * work;
    return 0.7 + std::max(clocks / (arch.clock_ghz * 1e3), dram + 1);
}

} // namespace

void add_stem_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, bool tf32) {
    Contraction c = window_contraction(s);
    if (c.k() == 0 || !runs(s, c, tf32)) {
        return;
    }
    for (StemTile t : {StemTile{64, 1}, StemTile{64, 2}, StemTile{32, 1}, StemTile{32, 2}}) {
        bool wasted = t.columns == 64 && (s.results <= 32 || !vector_columns(c));
        if (!wasted && fits(s, t)) {
            ConvStem parameters = {static_cast<int>(warps) * t.rows, static_cast<int>(across),
                                   t.columns};
            out.push_back(make_tactic(parameters, stem_us(s, t, arch)));
        }
    }
}

Emitted emit_stem_conv(const ConvShape& s, const Arch& arch, const ConvStem& parameters) {
    StemTile tile = {parameters.columns, parameters.rows / static_cast<int>(warps)};
    Contraction c = window_contraction(s);
    StemArg a = stem_of(s, tile);
    StoreText t = store_text(c, vector_columns(c) ? 8 : 1);
    bool registers = in_registers(c);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define IN ", c_type(s.x.dtype), "\n#define MMA(c, a, b0, b1) ",
            s.x.dtype == DType::F16    ? "mma_f16"
            : s.x.dtype == DType::BF16 ? "mma_bf16"
                                       : "mma_tf32",
            "((float*)(c), a, b0, b1)\n#define SINGLE ", s.x.dtype == DType::F32 ? 1 : 0,
            "\n#define WORDS ", bit_width(s.out.dtype) == 32 ? 1 : 0, "\n#define BN ", tile.columns,
            "\n#define ROWS ", tile.rows, "\n#define CHANNELS ", s.window.channels,
            "\n#define PIXEL ", pixel_elements(s), "\n#define X_PLANES ", plane_vectors(s) ? 1 : 0,
            "\n#define W_VECTORS ", weight_vectors(s, c) ? 1 : 0, "\n#define IN_REGISTERS ",
            registers ? 1 : 0, "\n", t.defines);
    l.program.body = str(device_file("contract"),
                         registers ? persistent_text(c, persistent_epilogue(c)) : t.functions,
                         registers ? "" : device_file("store_tile"), device_file("window"));
    l.program.family = "conv_stem";
    l.entry = "conv_stem";
    l.block = 128;
    l.shared = shared_bytes(s, tile);
    // As many blocks as share the SMs, each with the weights of all its columns.
    int64_t resident = std::clamp<int64_t>(arch.shared_per_sm / (l.shared + 1024), 1, 4) * arch.sms;
    l.grid = {std::min(a.tiles, div_up(resident, a.blocks_n)) * a.blocks_n, 1, 1};
    l.args.pointer(s.x).pointer(s.w).pointer(s.out).i32(s.w_constant ? 1 : 0);
    add_window(l.args, s.window);
    l.args.value(a);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted emitted;
    emitted.launches.push_back(std::move(l));
    return emitted;
}

} // namespace ingot::kernels
