// SPDX-License-Identifier: Apache-2.0
// The host side of conv_depthwise.cuh and conv_strip.cuh: depthwise convolutions.
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/conv/algorithms.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ingot::kernels {

namespace {

constexpr int64_t vector = 8; // channels of an aligned access
constexpr int generic_threads = 128;

/// Whether channels of input and weights can be read in vectors of 8.
bool has_vectors(const ConvShape& s, const Contraction& c) {
    const WindowArg& w = s.window;
    return vector_columns(c) && w.step_c == 1 && s.w.view.strides[0] == 1 &&
           s.tap_step % vector == 0 && s.x.view.offset % vector == 0 &&
           s.w.view.offset % vector == 0 && w.step_n % vector == 0 && w.step[0] % vector == 0 &&
           w.step[1] % vector == 0 && w.step[2] % vector == 0 && bit_width(s.x.dtype) <= 32 &&
           bit_width(s.w.dtype) <= 32;
}

double dram_us(const ConvShape& s, const Arch& arch) {
    auto bytes = [](const Operand& o) {
        return static_cast<double>(o.view.count()) * bit_width(o.dtype) / 8;
    };
    return (bytes(s.x) + bytes(s.w) + bytes(s.out) + operand_bytes(s.epilogue)) /
           (arch.dram_gbs * 0.8e3);
}

/// Instructions after the sum of a result.
double end_instructions(const ConvShape& s) {
    return 1 + 1.3 * static_cast<double>(s.epilogue.body.code.size());
}

// --- conv_depthwise: anything

/// Taps whose loads are in flight together.
int taps_of_batch(int wide) {
    return wide > 1 ? 3 : 9;
}

double generic_us(const ConvShape& s, int wide, const Arch& arch) {
    double start_clocks = wide > 1 ? 4000 : 700;
    // For 8 channels: one tap, and everything else.
    double tap_instructions = wide > 1 ? 32 : 40;
    double others = 150 + vector * end_instructions(s);
    auto taps = static_cast<double>(s.taps());
    // Measured while a thread waited for each tap by itself. Predicted for windows over three axes,
    // which nothing else runs: it waits for a batch of taps at a time, and registers leave an SM a
    // third of the warps.
    bool deep = s.window.kernel[0] > 1;
    double step_clocks = wide > 1 ? 1080 : deep ? 700 : 500;
    auto steps = static_cast<double>(deep ? div_up(s.taps(), taps_of_batch(wide)) : s.taps());
    const double resident = deep ? 12 : 40; // warps of an SM
    double warps = static_cast<double>(s.out.view.count()) / vector / 32;
    double issue = warps / (4.0 * arch.sms) * (taps * tap_instructions + others) * 1.15;
    double rounds = std::max(1.0, warps / (resident * arch.sms));
    double clocks = std::max(issue, rounds * (start_clocks + steps * step_clocks)) + 0.3 * issue;
    return 0.7 + std::max(clocks / (arch.clock_ghz * 1e3), dram_us(s, arch));
}

// --- conv_strip: tiles of the plane in shared memory

constexpr int most_threads = 256;
constexpr int64_t most_shared = int64_t{48} * 1024;
constexpr int64_t most_grid = 65535;

/// `struct Strip` of conv_strip.cuh.
struct StripArg {
    uint64_t by_pieces = 0, by_columns = 0, by_groups = 0, by_runs = 0, by_chunks = 0;
    int64_t step_n = 0;
    int32_t step_h = 0, step_w = 0, tap_step = 0;
    int32_t pieces = 0, columns = 0, groups = 0, runs = 0, chunks = 0;
    int32_t tile_rows = 0, copies = 0, taps = 0;
    int32_t kernel_h = 0, stride_h = 0, dilation_h = 0, dilation_w = 0, low_h = 0, low_w = 0;
    int32_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, channels = 0, w_constant = 0;
};

/// The work of a thread: literals of the program.
struct StripWork {
    int vec = 2;  // channels
    int wide = 4; // adjacent results
};
constexpr StripWork strip_works[] = {{2, 4}, {2, 2}, {4, 2}, {4, 4}};

/// The tile of a block.
struct StripTile {
    StripWork work;
    int64_t rows = 1, runs = 1;
    int64_t eights = 1; // of channels

    int64_t threads() const { return div_up(eights * vector / work.vec * runs * rows, 32) * 32; }
};

int32_t narrow_int(int64_t v) {
    return static_cast<int32_t>(v);
}

int64_t columns_read(const ConvShape& s, const StripTile& t) {
    const WindowArg& w = s.window;
    return (t.runs * t.work.wide - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
}

int64_t rows_read(const ConvShape& s, const StripTile& t) {
    const WindowArg& w = s.window;
    return (t.rows - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
}

int64_t pieces_of(const ConvShape& s, const StripTile& t) {
    return t.eights * vector * bit_width(s.x.dtype) / 128;
}

int64_t strip_shared(const ConvShape& s, const StripTile& t) {
    return 16 * pieces_of(s, t) * (s.taps() + rows_read(s, t) * columns_read(s, t));
}

struct StripGrid {
    int64_t chunks = 0, across = 0, down = 0;
};

StripGrid strip_grid(const ConvShape& s, const StripTile& t) {
    return {div_up(s.channels / vector, t.eights), div_up(s.window.out[2], t.runs * t.work.wide),
            div_up(s.window.out[1], t.rows)};
}

bool strip_runs(const ConvShape& s, const Contraction& c) {
    const WindowArg& w = s.window;
    bool types = s.x.dtype == s.w.dtype &&
                 (s.x.dtype == DType::F16 || s.x.dtype == DType::BF16 || s.x.dtype == DType::F32);
    bool flat = w.in[0] == 1 && w.kernel[0] == 1 && w.low[0] == 0 && w.out[0] == 1;
    constexpr int64_t most = int64_t{1} << 30;
    auto small = [&](int64_t v) { return std::abs(v) < most; };
    bool plain = small(w.dilation[2]) && w.stride[2] <= 4 && w.kernel[2] <= 32 &&
                 s.taps() <= 1024 && small(w.dilation[1]) && small(w.stride[1] * w.out[1]) &&
                 small(w.low[1]) && small(w.low[2]) && small(w.in[1]) && small(w.in[2]) &&
                 small(w.stride[2] * w.out[2]);
    return types && flat && plain && has_vectors(s, c) && s.images <= most_grid &&
           small(w.in[1] * std::abs(w.step[1]) + w.in[2] * std::abs(w.step[2]) + s.channels) &&
           small(s.taps() * s.tap_step) && small(c.m()) && s.channels * w.out[2] < most;
}

bool strip_fits(const ConvShape& s, const StripTile& t) {
    StripGrid g = strip_grid(s, t);
    return t.threads() <= most_threads && strip_shared(s, t) <= most_shared &&
           g.down <= most_grid && g.chunks * g.across < (int64_t{1} << 31) / g.chunks;
}

/// The bank conflicts of lanes that read shared memory together.
double bank_conflicts(const ConvShape& s, const StripTile& t) {
    constexpr int64_t banks = 32;
    int64_t words = t.work.vec * bit_width(s.x.dtype) / 32; // of a lane
    int64_t groups = t.eights * vector / t.work.vec;
    int64_t pixel = pieces_of(s, t) * 4;
    int64_t row = s.window.stride[1] * columns_read(s, t) * pixel;
    int64_t run = t.work.wide * s.window.stride[2] * pixel;
    std::array<int, banks> readers{};
    int most = 1;
    for (int64_t lane = 0; lane < banks / words; ++lane) {
        int64_t line = lane / groups;
        int64_t at = line / t.runs * row + line % t.runs * run + lane % groups * words;
        int& here = readers[static_cast<size_t>(at % banks)];
        most = std::max(most, ++here);
    }
    return most;
}

double strip_us(const ConvShape& s, const StripTile& t, const Arch& arch) {
    const WindowArg& w = s.window;
    StripGrid g = strip_grid(s, t);
    bool halves = bit_width(s.x.dtype) == 16;
    auto threads = static_cast<double>(t.threads());
    double vec = t.work.vec;
    double wide = t.work.wide;
    auto taps = static_cast<double>(s.taps());
    auto pieces = static_cast<double>(pieces_of(s, t));
    double copies = pieces * static_cast<double>(rows_read(s, t) * columns_read(s, t));
    // Instructions of a warp, and clocks of shared memory.
    auto kernel_h = static_cast<double>(w.kernel[1]);
    auto kernel_w = static_cast<double>(w.kernel[2]);
    double reads = w.dilation[2] == 1
                       ? kernel_h * ((wide - 1) * static_cast<double>(w.stride[2]) + 2 * kernel_w)
                       : kernel_h * kernel_w * (wide + 1);
    double products = reads * (1 + (halves ? vec : 0)) + taps * vec * wide + 8 * kernel_h;
    double ends = wide * (14 + vec * end_instructions(s));
    double instructions = 120 + (copies * 24 + taps * pieces * 14) / threads + products + ends;
    double read_lines = reads * vec * (halves ? 0.5 : 1) * threads / 32 * bank_conflicts(s, t);
    // Global memory moves one line per clock; a pixel's channels take at least one line.
    double pixel_lines = std::max(1.0, pieces / 8);
    double results = static_cast<double>(t.rows * t.runs) * wide;
    double lines = read_lines + (copies / pieces + taps + results) * pixel_lines;
    auto blocks = static_cast<double>(g.chunks * g.across * g.down * s.images);
    double on_sm = std::ceil(blocks / arch.sms);
    double shared = static_cast<double>(strip_shared(s, t)) + 1024;
    double resident = std::floor(
        std::min({static_cast<double>(arch.threads_per_sm) / threads / (vec * wide > 8 ? 2 : 1),
                  static_cast<double>(arch.shared_per_sm) / shared, 24.0}));
    constexpr double wait_clocks = 1100; // for arguments and copies
    double rounds = std::ceil(on_sm / std::max(1.0, resident));
    double chain = rounds * (wait_clocks + 2 * instructions);
    double row_bytes = std::ceil(pieces / 2) * 32;
    constexpr double l2_bytes_per_clock = 40;
    double l2 = blocks * copies / pieces * row_bytes / (arch.sms * l2_bytes_per_clock);
    double issue = on_sm * threads / 128 * instructions * 1.15;
    double work = std::max({issue, on_sm * lines, l2});
    // Waiting and working overlap in part.
    constexpr double overlap = 0.7;
    // Later blocks of an SM start later, while the first ones wait.
    constexpr double begin_clocks = 350;
    double begins = begin_clocks * (std::min({on_sm, std::max(1.0, resident), 4.0}) - 1);
    double clocks = std::max(chain, work) + (1 - overlap) * (issue + on_sm * lines + l2) + begins;
    return 0.7 + std::max(clocks / (arch.clock_ghz * 1e3), dram_us(s, arch) + 0.5);
}

/// Candidates for a block's share of `n`.
std::vector<int64_t> shares(int64_t n, int64_t most) {
    std::vector<int64_t> all;
    for (int64_t v : {1, 2, 3, 4, 6, 7, 8, 14, 16, 32}) {
        if (v <= std::min(n, most)) {
            all.push_back(v);
        }
    }
    for (int64_t parts : {1, 2, 3, 4, 5, 6}) {
        int64_t v = div_up(n, parts);
        if (v <= most && std::find(all.begin(), all.end(), v) == all.end()) {
            all.push_back(v);
        }
    }
    return all;
}

ConvStrip parameters_of(const StripTile& t) {
    return {narrow_int(t.rows), narrow_int(t.runs * t.work.wide), narrow_int(t.eights * vector),
            t.work.vec, t.work.wide};
}

StripTile tile_of(const ConvStrip& p) {
    return {{p.vec, p.wide}, p.rows, p.columns / p.wide, p.channels / vector};
}

/// The best tile of small blocks and of large ones for each thread's work.
void add_strips(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch) {
    constexpr int small_block = 128;
    // Elements of a row, in registers.
    const int most_used = bit_width(s.x.dtype) == 16 ? 64 : 40;
    for (const StripWork& work : strip_works) {
        int64_t used = (work.wide - 1) * s.window.stride[2] + s.window.kernel[2];
        if (used * work.vec > most_used) {
            continue;
        }
        struct Best {
            StripTile tile;
            double us = 0;
        };
        std::array<std::optional<Best>, 2> best;
        for (int64_t eights : shares(s.channels / vector, 32)) {
            for (int64_t runs : shares(div_up(s.window.out[2], work.wide), 32)) {
                for (int64_t rows : shares(s.window.out[1], 16)) {
                    StripTile t = {work, rows, runs, eights};
                    if (!strip_fits(s, t)) {
                        continue;
                    }
                    double us = strip_us(s, t, arch);
                    std::optional<Best>& kept = best[t.threads() > small_block ? 1 : 0];
                    if (!kept || us < kept->us) {
                        kept = {t, us};
                    }
                }
            }
        }
        for (const std::optional<Best>& b : best) {
            if (b) {
                out.push_back(make_tactic(parameters_of(b->tile), b->us));
            }
        }
    }
}

uint64_t inverse(int64_t n) {
    return static_cast<uint64_t>(div_up(int64_t{1} << 32, n));
}

StripArg strip_arg(const ConvShape& s, const StripTile& t) {
    const WindowArg& w = s.window;
    StripGrid g = strip_grid(s, t);
    int64_t pieces = pieces_of(s, t);
    int64_t columns = columns_read(s, t);
    int64_t groups = t.eights * vector / t.work.vec;
    StripArg a;
    a.by_pieces = inverse(pieces);
    a.by_columns = inverse(columns);
    a.by_groups = inverse(groups);
    a.by_runs = inverse(t.runs);
    a.by_chunks = inverse(g.chunks);
    a.step_n = w.step_n;
    a.step_h = narrow_int(w.step[1]);
    a.step_w = narrow_int(w.step[2]);
    a.tap_step = narrow_int(s.tap_step);
    a.pieces = narrow_int(pieces);
    a.columns = narrow_int(columns);
    a.groups = narrow_int(groups);
    a.runs = narrow_int(t.runs);
    a.chunks = narrow_int(g.chunks);
    a.tile_rows = narrow_int(t.rows);
    a.copies = narrow_int(pieces * columns * rows_read(s, t));
    a.taps = narrow_int(s.taps());
    a.kernel_h = narrow_int(w.kernel[1]);
    a.stride_h = narrow_int(w.stride[1]);
    a.dilation_h = narrow_int(w.dilation[1]);
    a.dilation_w = narrow_int(w.dilation[2]);
    a.low_h = narrow_int(w.low[1]);
    a.low_w = narrow_int(w.low[2]);
    a.in_h = narrow_int(w.in[1]);
    a.in_w = narrow_int(w.in[2]);
    a.out_h = narrow_int(w.out[1]);
    a.out_w = narrow_int(w.out[2]);
    a.channels = narrow_int(s.channels);
    a.w_constant = s.w_constant ? 1 : 0;
    return a;
}

} // namespace

void add_depthwise(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch) {
    if (s.out.view.count() > 0 && strip_runs(s, depthwise_contraction(s))) {
        add_strips(out, s, arch);
    }
    for (int wide : {1, 4}) {
        out.push_back(make_tactic(ConvDepthwise{wide}, generic_us(s, wide, arch)));
    }
}

Emitted emit_depthwise(const ConvShape& s, const ConvDepthwise& parameters) {
    int wide = parameters.wide;
    Contraction c = depthwise_contraction(s);
    int width = has_vectors(s, c) ? static_cast<int>(vector) : 1;
    StoreText t = store_text(c, width);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define TA ", c_type(s.x.dtype), "\n#define TB ", c_type(s.w.dtype), "\n", t.defines,
            "#define WIDE ", wide, "\n#define BATCH ", taps_of_batch(wide), "\n");
    l.program.body = str(device_file("contract"), t.functions, device_file("window"));
    l.program.family = "conv_depthwise";
    l.entry = "conv_depthwise";
    int64_t lines = s.images * s.window.out[0] * s.window.out[1] * div_up(s.window.out[2], wide);
    l.block = generic_threads;
    l.grid = {div_up(lines * (s.channels / width), l.block), 1, 1};
    l.args.pointer(s.x).pointer(s.w).pointer(s.out).i64(s.tap_step);
    add_window(l.args, s.window);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

Emitted emit_strip(const ConvShape& s, const ConvStrip& parameters) {
    StripTile t = tile_of(parameters);
    Contraction c = depthwise_contraction(s);
    StoreText text = store_text(c, t.work.vec);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define IN ", c_type(s.x.dtype), "\n", text.defines, "#define WIDE ", t.work.wide,
            "\n#define KW ", s.window.kernel[2], "\n#define STRIDE_W ", s.window.stride[2],
            "\n#define GAPS ", s.window.dilation[2] > 1 ? 1 : 0, "\n");
    l.program.body = str(device_file("contract"), text.functions);
    l.program.family = "conv_strip";
    l.entry = "conv_strip";
    StripGrid g = strip_grid(s, t);
    l.block = static_cast<int>(t.threads());
    l.grid = {g.chunks * g.across, g.down, s.images};
    l.shared = strip_shared(s, t);
    l.args.pointer(s.x).pointer(s.w).pointer(s.out).value(strip_arg(s, t));
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
