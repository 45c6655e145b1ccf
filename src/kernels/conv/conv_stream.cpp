// SPDX-License-Identifier: Apache-2.0
// The host side of conv_stream.cuh.
#include "kernels/conv/conv_stream.h"

#include "kernels/common/expr_text.h"
#include "kernels/contraction/persistent.h"
#include "kernels/contraction/store_text.h"
#include "kernels/contraction/wgmma.h"
#include "kernels/conv/conv_halo.h"
#include "kernels/conv/patch_maps.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t side = 8; // of a square
constexpr int64_t groups = 2;
constexpr int64_t warps = 4 * groups;
constexpr int64_t line = 128;
constexpr int64_t panel = 64; // columns that TMA stores at once
constexpr int64_t panel_bytes = 2 * side * line;
constexpr int64_t bar_bytes = 8;
constexpr int64_t slots = 2;
constexpr int64_t least_w_slots = 3;
constexpr int64_t most_w_slots = 8;
constexpr int64_t step_channels = 16; // of a product
constexpr int64_t most_steps = line / 2 / step_channels;

/// `struct Stream` of conv_stream.cuh.
struct StreamArg {
    int32_t across, down, tiles, columns, kernel_w, kernel_h, kernel_d, dilation_w, dilation_h,
        dilation_d, low_w, low_h, low_d, width, lines, slabs, slot_bytes, results, w_at, panel_at,
        bar_at, w_constant, backwards;
};

struct Stream {
    int64_t columns = 0, parts = 0;           // of a tile; squares of a warpgroup
    int64_t width = 0, height = 0, slabs = 0; // pixels
    int64_t steps = 0;                        // products of 16 channels in a slab
    int64_t tiles_across = 0, tiles_down = 0, tiles = 0, column_tiles = 0;
    int64_t slot_bytes = 0, w_slots = 0;

    int64_t w_bytes() const { return columns * line; }
    int64_t w_at() const { return slots * slot_bytes; }
    int64_t panel_at() const { return w_at() + w_slots * w_bytes(); }
    int64_t bar_at() const {
        return panel_at() + warps * parts * div_up(columns, panel) * panel_bytes;
    }
    int64_t shared() const { return bar_at() + bar_bytes * (2 * slots + 2 * w_slots + warps); }
    int64_t blocks(const Arch& arch) const {
        return column_tiles * std::min(tiles, arch.sms / column_tiles);
    }
};

Stream stream_of(const ConvShape& s, const ConvStream& parameters, const Arch& arch) {
    const WindowArg& w = s.window;
    Sizes out = result_sizes(s);
    Stream t;
    t.columns = parameters.columns;
    t.parts = parameters.rows / (groups * side * side);
    t.width = groups * side + (w.kernel[2] - 1) * w.dilation[2];
    t.height = t.parts * side + (w.kernel[1] - 1) * w.dilation[1];
    t.slabs = div_up(w.channels, slab_elements(s.x.dtype));
    t.steps = std::min(div_up(w.channels, step_channels), most_steps);
    t.tiles_across = div_up(out[0], groups * side);
    t.tiles_down = div_up(out[1], t.parts * side);
    t.tiles = t.tiles_across * t.tiles_down * out[2];
    t.column_tiles = div_up(s.results, t.columns);
    t.slot_bytes = round_up(t.width * t.height * line, 1024);
    t.w_slots = std::clamp<int64_t>(
        (arch.shared_per_block - t.shared()) / (t.w_bytes() + 2 * bar_bytes), 0, most_w_slots);
    return t;
}

bool fits(const Stream& t, const Arch& arch) {
    constexpr int64_t most_box = 256;
    constexpr int64_t most_tiles = int64_t{1} << 28;
    return t.w_slots >= least_w_slots && t.width <= most_box && t.height <= most_box &&
           t.tiles < most_tiles && t.column_tiles <= arch.sms;
}

/// By the law of conv_halo. Measured on an H200: 31 launches of volumes took 0.9 to 1.3 of this.
double stream_us(const ConvShape& s, const Stream& t, const Contraction& c, const Arch& arch) {
    constexpr double launch = 0.7;
    constexpr double l2_bytes_per_clock = 40; // of an SM
    constexpr double position = 90;           // barriers around the products of a kernel position
    double clock = arch.clock_ghz * 1e3;
    auto count = [](int64_t n) { return static_cast<double>(n); };
    double plane = count(s.window.kernel[1] * s.window.kernel[2]);
    double products = count(groups * t.parts * t.steps) * halo_product_clocks(t.columns) + position;
    double loads = (count(t.w_bytes()) + count(t.slot_bytes) / plane) / l2_bytes_per_clock;
    double end = count(t.columns) / 2 * (8.0 + value_instructions(c.epilogue)) * 4 *
                 (count(t.parts) + 1) / 2;
    double tile = count(s.taps() * t.slabs) * std::max(products, loads) + end + 400;
    double start = count(t.slot_bytes) / l2_bytes_per_clock + 1500;
    double each = count(div_up(t.tiles, t.blocks(arch) / t.column_tiles));
    double dram = bytes_moved(s) / (arch.dram_gbs * 0.8e3);
    return launch + std::max((start + each * tile + 800) / clock, start / clock + dram);
}

StreamArg argument(const ConvShape& s, const Stream& t) {
    const WindowArg& w = s.window;
    auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
    return {narrow(t.tiles_across), narrow(t.tiles_down),  narrow(t.tiles),
            narrow(t.column_tiles), narrow(w.kernel[2]),   narrow(w.kernel[1]),
            narrow(w.kernel[0]),    narrow(w.dilation[2]), narrow(w.dilation[1]),
            narrow(w.dilation[0]),  narrow(w.low[2]),      narrow(w.low[1]),
            narrow(w.low[0]),       narrow(t.width),       narrow(t.width * t.height),
            narrow(t.slabs),        narrow(t.slot_bytes),  narrow(s.results),
            narrow(t.w_at()),       narrow(t.panel_at()),  narrow(t.bar_at()),
            s.w_constant ? 1 : 0,   s.backwards ? 1 : 0};
}

} // namespace

void add_stream_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch) {
    if (s.out.view.count() == 0 || !fetches_halos(s, arch)) {
        return;
    }
    Contraction c = window_contraction(s);
    if (c.paired() || bit_width(s.out.dtype) != 16 || !can_store_by_tma(c, result_sizes(s))) {
        return;
    }
    for (int columns : {16, 32, 64, 96, 128}) {
        // TMA stores whole panels, so that only the last tile of a row may end inside of one.
        bool inside = columns % panel != 0 && s.results > columns;
        bool few = columns < panel && s.results <= columns - step_channels;
        bool one = columns == panel && s.results <= panel / 2;
        bool wide = columns > panel && s.results <= panel;
        if (inside || few || one || wide) {
            continue;
        }
        for (int rows : {128, 256}) {
            // Sums of 256 x 128 would take all registers.
            if (rows * columns > 256 * 96) {
                continue;
            }
            ConvStream parameters{rows, columns};
            Stream t = stream_of(s, parameters, arch);
            if (fits(t, arch)) {
                // Few images were measured: other kernels come first where they are close.
                const double doubt = s.window.flat() ? 1.3 : 1;
                out.push_back(make_tactic(parameters, doubt * stream_us(s, t, c, arch)));
            }
        }
    }
}

Emitted emit_stream_conv(const ConvShape& s, const Arch& arch, const ConvStream& parameters,
                         int variant) {
    Contraction c = generalised(window_contraction(s), variant & variant_rows);
    PersistentEpilogue e = persistent_epilogue(c);
    Stream t = stream_of(s, parameters, arch);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define WGMMA_TYPE \"", s.x.dtype == DType::F16 ? "f16" : "bf16", "\"\n#define BN ",
            t.columns, "\n#define PARTS ", t.parts, "\n#define STEPS ", t.steps, "\n#define SLOTS ",
            slots, "\n#define W_SLOTS ", t.w_slots, "\n#define FULL ", e.full >= 0 ? 1 : 0, "\n",
            store_text(c, store_width(c)).defines);
    l.program.body = str(device_file("wgmma"), persistent_text(c, e), device_file("halo_panels"));
    l.program.family = "conv_stream";
    l.entry = "conv_stream";
    l.grid = {t.blocks(arch), 1, 1};
    l.block = static_cast<int>(groups * 128 + 32);
    l.shared = t.shared();
    l.args.map(s.x, halo_map(s, t.width, t.height));
    l.args.map(s.w, weight_map(s, static_cast<int>(t.columns)));
    Sizes out = result_sizes(s);
    l.args.map(s.out, panel_map(c, c.out, 0, out, side, 2));
    if (e.full >= 0) {
        const Operand& full = c.epilogue.operands[static_cast<size_t>(e.full)];
        l.args.map(full, panel_map(c, full, static_cast<size_t>(e.full) + 1, out, side, 2));
    }
    l.args.value(argument(s, t));
    add_operands(l.args, c);
    Emitted emitted;
    emitted.launches.push_back(std::move(l));
    return emitted;
}

} // namespace ingot::kernels
