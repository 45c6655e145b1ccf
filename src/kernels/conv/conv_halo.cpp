// SPDX-License-Identifier: Apache-2.0
// The host side of conv_halo.cuh.
#include "kernels/conv/conv_halo.h"

#include "kernels/common/expr_text.h"
#include "kernels/contraction/persistent.h"
#include "kernels/contraction/store_text.h"
#include "kernels/contraction/wgmma.h"
#include "kernels/conv/patch_maps.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr std::string_view square_name = "square";
constexpr std::string_view strip_name = "strip";
constexpr int64_t side = 8; // of a square
constexpr int64_t tile_rows = 64;
constexpr int64_t line = 128;
constexpr int64_t panel = 64;          // columns that TMA stores at once
constexpr int64_t fewest_columns = 16; // of a tile
constexpr int64_t least_slots = 2;
constexpr int64_t most_slots = 8;
constexpr int64_t step_channels = 16; // of a product
constexpr int64_t most_steps = line / 2 / step_channels;

/// `struct Halo` of conv_halo.cuh.
struct HaloArg {
    int32_t across, down, tiles, columns, kernel_w, kernel_h, dilation_w, dilation_h, low_w, low_h,
        rows, width, lines, slabs, slab_bytes, panel_lines, results, slot_at, panel_at, bar_at,
        w_constant, backwards;
};

struct Halo {
    bool strip = false;
    int64_t columns = 64;                     // of a tile
    int64_t across = 0, rows = 0;             // results in a tile
    int64_t width = 0, height = 0, slabs = 0; // pixels
    int64_t tiles_across = 0, tiles_down = 0, tiles = 0, column_tiles = 0;
    int64_t slab_bytes = 0, weight_bytes = 0;
    int64_t steps = 0; // products of 16 channels in a slab
    int64_t groups = 2, slots = 0;

    int64_t slot_bytes() const { return slabs * slab_bytes; }
    int64_t panel_bytes() const { return groups * tile_rows * round_up(columns, panel) * 2; }
    int64_t bars(int64_t n) const { return 8 * (1 + 2 * n + 5 * groups); }
    int64_t shared(int64_t n) const {
        return weight_bytes + n * slot_bytes() + panel_bytes() + bars(n);
    }
    int64_t blocks(const Arch& arch) const {
        return column_tiles * std::min(tiles, arch.sms / column_tiles);
    }
    /// The size of a panel that TMA stores.
    int64_t panel_width() const { return strip ? width : side; }
    int64_t panel_rows() const { return strip ? rows : 2; }
};

int64_t slots_of(const Halo& h, const Arch& arch) {
    return std::clamp<int64_t>((arch.shared_per_block - h.shared(0)) / (h.slot_bytes() + 16), 0,
                               most_slots);
}

Halo halo_of(const ConvShape& s, const ConvHalo& parameters, const Arch& arch) {
    const WindowArg& w = s.window;
    int64_t beside = (w.kernel[2] - 1) * w.dilation[2];
    int64_t below = (w.kernel[1] - 1) * w.dilation[1];
    Halo h;
    h.strip = parameters.tile == strip_name;
    h.columns = parameters.columns;
    h.across = h.strip ? w.out[2] : side;
    h.width = h.across + beside;
    h.rows = h.strip ? std::min(tile_rows / h.width, w.out[1]) : side;
    h.height = h.rows + below;
    h.slabs = div_up(w.channels, slab_elements(s.x.dtype));
    // Only the last slab may have fewer channels, and all slabs make as many products.
    h.steps = std::min(div_up(w.channels, step_channels), most_steps);
    h.tiles_across = div_up(w.out[2], h.across);
    h.tiles_down = h.rows > 0 ? div_up(w.out[1], h.rows) : 0;
    h.tiles = h.tiles_across * h.tiles_down * s.images;
    h.column_tiles = div_up(s.results, h.columns);
    // Products of a strip reach beyond its last row.
    int64_t lines = std::max(h.width * h.height, tile_rows + below * h.width + beside);
    h.slab_bytes = round_up(lines * line, 1024);
    h.weight_bytes = s.taps() * h.slabs * h.columns * line;
    h.groups = h.columns <= panel ? 3 : 2;
    h.slots = slots_of(h, arch);
    if (h.slots < least_slots) {
        h.groups = 2;
        h.slots = slots_of(h, arch);
    }
    return h;
}

bool fits(const Halo& h, const Arch& arch) {
    constexpr int64_t most_box = 256;
    constexpr int64_t most_tiles = int64_t{1} << 28;
    return h.rows > 0 && h.slots >= least_slots && h.width <= most_box && h.height <= most_box &&
           h.tiles < most_tiles && h.column_tiles <= arch.sms;
}

/// By the law of the other convolutions by wgmma.
double halo_us(const ConvShape& s, const Halo& h, const Contraction& c, const Arch& arch) {
    constexpr double launch = 0.7;
    constexpr double l2_bytes_per_clock = 40; // of an SM, in boxes of few lines
    double product_clocks = halo_product_clocks(h.columns);
    // Turns and barriers between the products of two tiles. Measured on an H200: tiles of 36 and 72
    // products of 32 columns at 1,680 and 2,800 clocks, of 36 of 64 columns at 1,960.
    constexpr double between = 560;
    double clock = arch.clock_ghz * 1e3;
    auto each = static_cast<double>(div_up(h.tiles, h.blocks(arch) / h.column_tiles));
    double products = static_cast<double>(s.taps() * h.slabs * h.steps) * product_clocks;
    double end = static_cast<double>(h.columns) / 2 * (8.0 + value_instructions(c.epilogue)) * 4;
    double loads = static_cast<double>(h.slot_bytes()) / l2_bytes_per_clock;
    // The first tile waits for all weights, which come before the kernel's wait where they are
    // constant; warpgroups that store leave the tensor cores to others.
    double hidden = s.w_constant ? 2000 : 0;
    double weights = static_cast<double>(h.weight_bytes) / l2_bytes_per_clock;
    double start = std::max(weights - hidden, 0.0) + 1500;
    double tile =
        std::max({products + between, loads, (products + end) / static_cast<double>(h.groups)});
    double dram = bytes_moved(s) / (arch.dram_gbs * 0.8e3);
    return launch + std::max((start + each * tile + end + 800) / clock, start / clock + dram);
}

HaloArg argument(const ConvShape& s, const Halo& h) {
    const WindowArg& w = s.window;
    auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
    int64_t panels = h.weight_bytes + h.slots * h.slot_bytes();
    return {narrow(h.tiles_across),
            narrow(h.tiles_down),
            narrow(h.tiles),
            narrow(h.column_tiles),
            narrow(w.kernel[2]),
            narrow(w.kernel[1]),
            narrow(w.dilation[2]),
            narrow(w.dilation[1]),
            narrow(w.low[2]),
            narrow(w.low[1]),
            narrow(h.rows),
            narrow(h.width),
            narrow(h.width * h.height),
            narrow(h.slabs),
            narrow(h.slab_bytes),
            narrow(h.panel_width() * h.panel_rows()),
            narrow(s.results),
            narrow(h.weight_bytes),
            narrow(panels),
            narrow(panels + h.panel_bytes()),
            s.w_constant ? 1 : 0,
            s.backwards ? 1 : 0};
}

} // namespace

bool fetches_halos(const ConvShape& s, const Arch& arch) {
    const WindowArg& w = s.window;
    int64_t chunk = chunk_elements(s.x.dtype);
    auto chunked = [chunk](int64_t v) { return v % chunk == 0 && v >= 0; };
    bool plain = s.groups == 1 && w.stride[1] == 1 && w.stride[2] == 1 && s.taps() > 1;
    bool planes = w.flat() || (s.images == 1 && w.stride[0] == 1 && chunked(w.step[0]));
    bool layout = w.step_c == 1 && chunked(w.step_n) && chunked(w.step[1]) && chunked(w.step[2]) &&
                  chunked(s.x.view.offset) && chunked(s.w.view.offset) &&
                  chunked(s.w.view.strides[0]) && chunked(s.tap_step) && s.w.view.strides[1] == 1 &&
                  w.channels % chunk == 0;
    bool halves = bit_width(s.x.dtype) == 16 && wgmma_types(s.x.dtype, s.w.dtype, false);
    return arch.has_wgmma() && halves && plain && planes && layout;
}

double halo_product_clocks(int64_t columns) {
    auto wide = static_cast<double>(columns);
    return columns < panel ? 23 + wide / 4 : 34 * wide / panel;
}

void add_halo_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch) {
    if (s.out.view.count() == 0 || !s.window.flat() || !fetches_halos(s, arch)) {
        return;
    }
    Contraction c = window_contraction(s);
    if (c.paired() || bit_width(s.out.dtype) != 16 || !can_store_by_tma(c, result_sizes(s))) {
        return;
    }
    for (int columns : {16, 32, 64, 128}) {
        for (std::string_view tile : {square_name, strip_name}) {
            ConvHalo parameters{std::string(tile), columns};
            Halo h = halo_of(s, parameters, arch);
            bool few = columns < panel;
            bool fills = s.results > columns - (few ? fewest_columns : panel) &&
                         (!few || s.results <= columns);
            if (fills && fits(h, arch)) {
                out.push_back(make_tactic(parameters, halo_us(s, h, c, arch)));
            }
        }
    }
}

Emitted emit_halo_conv(const ConvShape& s, const Arch& arch, const ConvHalo& parameters,
                       int variant) {
    Contraction c = generalised(window_contraction(s), variant & variant_rows);
    PersistentEpilogue e = persistent_epilogue(c);
    Halo h = halo_of(s, parameters, arch);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define WGMMA_TYPE \"", s.x.dtype == DType::F16 ? "f16" : "bf16", "\"\n#define BN ",
            h.columns, "\n#define STEPS ", h.steps, "\n#define STRIP ", h.strip ? 1 : 0,
            "\n#define NC ", h.groups, "\n#define SLOTS ", h.slots, "\n#define FULL ",
            e.full >= 0 ? 1 : 0, "\n", store_text(c, store_width(c)).defines);
    l.program.body = str(device_file("wgmma"), persistent_text(c, e), device_file("halo_panels"));
    l.program.family = "conv_halo";
    l.entry = "conv_halo";
    l.grid = {h.blocks(arch), 1, 1};
    l.block = static_cast<int>(h.groups * 128 + 32);
    l.shared = h.shared(h.slots);
    l.args.map(s.x, halo_map(s, h.width, h.height));
    l.args.map(s.w, weight_map(s, static_cast<int>(h.columns)));
    Sizes out = result_sizes(s);
    l.args.map(s.out, panel_map(c, c.out, 0, out, h.panel_width(), h.panel_rows()));
    if (e.full >= 0) {
        const Operand& full = c.epilogue.operands[static_cast<size_t>(e.full)];
        l.args.map(full, panel_map(c, full, static_cast<size_t>(e.full) + 1, out, h.panel_width(),
                                   h.panel_rows()));
    }
    l.args.value(argument(s, h));
    add_operands(l.args, c);
    Emitted emitted;
    emitted.launches.push_back(std::move(l));
    return emitted;
}

} // namespace ingot::kernels
