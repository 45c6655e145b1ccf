// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/expr_text.h"
#include "kernels/gemv/gemv_rows.h"
#include "kernels/quantized_dot/tiles.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

// As in quant_pipelined.cuh.
constexpr int64_t tile_columns = 16;
constexpr int64_t tile_bytes = 2048;
constexpr int64_t row_bytes_of_tile = 128;
constexpr int64_t sums_bytes = 8192;
constexpr int64_t zeros_bytes = 512;
constexpr int64_t row_pad_bytes = 64;
constexpr int64_t most_row_bytes = 34 << 10;
constexpr int64_t most_stages = 12;

int64_t tile_elements(const QuantShape& s) {
    return row_bytes_of_tile * 8 / bit_width(s.c.b.dtype);
}

/// Elements of the depth that share a scale; 0 for a scale per column.
int64_t block_of(const QuantShape& s) {
    return s.block >= s.c.k() ? 0 : s.block;
}

/// The source of zero points: ZEROS of quant_pipelined.cuh.
int zeros_of(const QuantShape& s) {
    bool by_block = s.zero && block_of(s) > 0 && s.zero->operand.view.count() > 1;
    return !s.zero ? 0 : by_block ? 2 : 1;
}

/// Scales per column of a tile.
int64_t tile_scales(const QuantShape& s) {
    return std::max<int64_t>(1, tile_elements(s) / block_of(s));
}

/// Elements that TMA loads for 16 columns, or for half of them where they are pairs.
int64_t box_width(const QuantShape& s, const Operand& o) {
    int64_t least = 128 / bit_width(o.dtype);
    return s.c.paired() ? std::max<int64_t>(tile_columns / 2, least) : tile_columns;
}

int64_t box_bytes(const QuantShape& s, const Operand& o) {
    auto halves = static_cast<int64_t>(s.c.epilogue.sums);
    int64_t n = tile_scales(s) * box_width(s, o) * halves * bit_width(o.dtype) / 8;
    return round_up(n, 128);
}

/// Bytes of scales and zero points per tile.
int64_t extra_bytes(const QuantShape& s) {
    int64_t n = block_of(s) == 0 ? 0 : box_bytes(s, s.scale.operand);
    return zeros_of(s) == 2 ? n + box_bytes(s, s.zero->operand) : n;
}

int64_t depth_tiles(const QuantShape& s) {
    return div_up(s.c.k(), tile_elements(s));
}

int64_t rows_bytes(const QuantShape& s) {
    return gemv_rows(s.c) * (depth_tiles(s) * tile_elements(s) * 2 + row_pad_bytes);
}

int64_t stage_bytes(const QuantShape& s) {
    return pipeline_warps * (tile_bytes + extra_bytes(s) + 8);
}

int64_t shared_bytes(const QuantShape& s, int64_t stages) {
    return stages * stage_bytes(s) + sums_bytes + zeros_bytes + rows_bytes(s);
}

/// The columns of a half, or of half a head: those of the innermost axis but for that of pairs.
int64_t half_columns(const Contraction& c) {
    return c.heads ? c.heads->pairs : c.n() / static_cast<int64_t>(c.epilogue.sums);
}

/// The axis of columns along which tiles lie.
size_t tile_axis(const Contraction& c) {
    return c.columns.sizes.size() - c.epilogue.sums;
}

/// Whether TMA can load tiles of whole heads.
bool heads_fit(const Contraction& c) {
    return !c.heads || (!c.heads->interleaved && c.heads->pairs % (tile_columns / 2) == 0);
}

/// Whether TMA can load rows of blocks with adjacent columns. Boxes begin at multiples of 16 bytes:
/// others caused an illegal instruction on an H200.
bool loadable(const QuantShape& s, const Parameter& p) {
    auto bytes = [&](int64_t n) { return n * bit_width(p.operand.dtype) / 8; };
    auto halves = static_cast<int64_t>(s.c.epilogue.sums);
    int64_t half = half_columns(s.c);
    return p.column_step == 1 && bytes(tile_columns / halves) % 16 == 0 && p.block_step > 0 &&
           bytes(p.block_step) % 16 == 0 && bytes(p.operand.view.offset) % 16 == 0 &&
           (!s.c.paired() || bytes(half) % 16 == 0);
}

bool blocks_fit(const QuantShape& s) {
    int64_t block = block_of(s);
    int64_t part = tile_elements(s) / 8; // of a lane of the matrix instruction
    int64_t tile = tile_elements(s);
    return block == 0 ||
           (block % part == 0 && (tile % block == 0 || block % tile == 0) &&
            s.c.b.dtype != DType::F8E5M2 && loadable(s, s.scale) &&
            (zeros_of(s) != 2 || (bit_width(s.zero->operand.dtype) == 8 && loadable(s, *s.zero))));
}

bool zeros_fit(const QuantShape& s) {
    // Zero points beyond a byte would not fit 16-bit floats.
    return !s.zero ||
           (is_integer(s.c.b.dtype) && is_integer(s.zero->operand.dtype) &&
            bit_width(s.zero->operand.dtype) == 8 && (s.zero->block_step == 0 || zeros_of(s) == 2));
}

bool runs(const QuantShape& s, const Arch& arch) {
    const Contraction& c = s.c;
    auto bytes = [&](int64_t n) { return n * bit_width(c.b.dtype) / 8; };
    bool lies = c.depth.rank() == 1 && c.depth.a[0] == 1 && c.depth.b[0] == 1 &&
                c.columns.rank() == least_width(c) + (c.heads ? 1 : 0) && heads_fit(c) &&
                bytes(c.columns.b[tile_axis(c)]) % 16 == 0 && c.columns.b[tile_axis(c)] > 0 &&
                bytes(c.b.view.offset) % 16 == 0 &&
                (!c.paired() || (c.columns.b.back() > 0 && bytes(c.columns.b.back()) % 16 == 0));
    return arch.has_tma() && (c.a.dtype == DType::F16 || c.a.dtype == DType::BF16) &&
           (s.scaled ? bit_width(c.b.dtype) <= 8 : c.b.dtype == c.a.dtype) && c.batches() == 1 &&
           c.m() > 0 && c.m() <= most_gemv_rows && c.k() % 8 == 0 && lies && c.k() > 0 &&
           c.n() < (1 << 30) && c.a.view.offset % 8 == 0 && all_multiples(c.rows.a, 8) &&
           zeros_fit(s) && blocks_fit(s) && rows_bytes(s) <= most_row_bytes;
}

/// A grid's thread blocks, each with pipeline_warps / share groups of warps; the first `more`
/// groups make one unit of columns more than `few`. A grid has at least one block for every SM,
/// even if some are idle: two kernels are on the GPU at a time, and if the first left SMs free, two
/// blocks of the second would share one and take twice as long.
struct Shares {
    int64_t blocks, few, more;
};
Shares shares_of(const QuantShape& s, int64_t share, int64_t per_sm, const Arch& arch) {
    int64_t units = div_up(s.c.n(), tile_columns);
    int64_t blocks = 2 * units < arch.sms ? units : per_sm * arch.sms;
    int64_t groups = blocks * (pipeline_warps / share);
    return {blocks, units / groups, units % groups};
}

double weight_bytes(const QuantShape& s) {
    auto n = static_cast<double>(s.c.n());
    auto tiles = static_cast<double>(depth_tiles(s));
    return n * (static_cast<double>(s.c.k()) * bit_width(s.c.b.dtype) / 8 +
                tiles * static_cast<double>(extra_bytes(s)) / tile_columns);
}

double cost_us(const QuantShape& s, int64_t share, int64_t stages, int64_t per_sm,
               const Arch& arch) {
    Shares g = shares_of(s, share, per_sm, arch);
    auto units = static_cast<double>(div_up(s.c.n(), tile_columns));
    auto depth = static_cast<double>(depth_tiles(s));
    // Units of the busiest SM.
    int64_t everywhere = per_sm * (pipeline_warps / share) * g.few;
    auto busiest = static_cast<double>(everywhere + div_up(g.more, arch.sms));
    double uneven = std::max(1.0, std::min(busiest, units) * arch.sms / units);
    // with more of them, each reaches less of the memory's speed
    double streams = per_sm > 1 ? 1.15 : 1;
    double dram_us = weight_bytes(s) / (arch.dram_gbs * 1.06e3) * streams *
                     (1 + 0.3 * (std::min(uneven, 3.0) - 1));
    // Instructions per tile and per unit, of a warp.
    int passes = block_of(s) > 0 ? (gemv_rows(s.c) + 1) / 2 : 1;
    bool narrow = bit_width(s.c.b.dtype) == 4;
    double tile = 70 +
                  (narrow     ? 150
                   : s.scaled ? 75
                              : 0) +
                  passes * (narrow ? 45 : 30) + (s.c.a.dtype == DType::BF16 && !narrow ? 150 : 0);
    double unit = 70;
    double rounds = std::ceil(depth / static_cast<double>(share)) * static_cast<double>(share);
    double math_us = units * uneven * (rounds * tile + static_cast<double>(share) * unit) /
                     (arch.sms * 4 * arch.clock_ghz * 1e3 * 0.6);
    const double start_us = s.scaled ? 0.9 : 1.2; // gemv_pipelined is preferred
    constexpr double block_us = 0.15;             // after another on its SM
    auto resident = static_cast<double>(
        std::max<int64_t>(1, arch.shared_per_sm / (shared_bytes(s, stages) + 1024)));
    double turns = std::max(1.0, static_cast<double>(per_sm) / resident);
    // A warp's tiles, one after the other.
    double tile_us = (narrow ? 600 : s.scaled ? 370 : 300) / (arch.clock_ghz * 1e3);
    double warp_us =
        turns *
        static_cast<double>((g.few + (g.more > 0 ? 1 : 0)) * div_up(depth_tiles(s), share)) *
        tile_us;
    return start_us + (turns - 1) * block_us + std::max({dram_us, math_us, warp_us});
}

/// The axes of a parameter for TMA: columns, halves of pairs, blocks.
TensorMap parameter_map(const QuantShape& s, const Parameter& p) {
    auto halves = static_cast<uint64_t>(s.c.epilogue.sums);
    auto size = static_cast<uint64_t>(bit_width(p.operand.dtype) / 8);
    auto columns = static_cast<uint64_t>(half_columns(s.c));
    uint64_t heads = static_cast<uint64_t>(s.c.n()) / halves / columns;
    uint64_t row = static_cast<uint64_t>(p.block_step) * size;
    auto blocks = static_cast<uint64_t>(div_up(s.c.k(), block_of(s)));
    TensorMap m;
    m.dtype = p.operand.dtype;
    m.rank = 4;
    m.sizes = {columns, halves, blocks, heads, 1};
    m.strides = {halves == 1 ? row : columns * size, row,
                 s.c.heads ? 2 * columns * size : row * blocks};
    m.box = {static_cast<uint32_t>(box_width(s, p.operand)), static_cast<uint32_t>(halves),
             static_cast<uint32_t>(tile_scales(s)), 1, 1};
    m.swizzle128 = false;
    return m;
}

TensorMap weight_map(const QuantShape& s) {
    const Contraction& c = s.c;
    auto bytes = [&](int64_t n) { return static_cast<uint64_t>(n * bit_width(c.b.dtype) / 8); };
    auto halves = static_cast<uint64_t>(c.epilogue.sums);
    auto columns = static_cast<uint64_t>(half_columns(c));
    uint64_t heads = static_cast<uint64_t>(c.n()) / halves / columns;
    uint64_t row = bytes(c.columns.b[tile_axis(c)]);
    uint64_t half = halves == 1 ? row * columns : bytes(c.columns.b.back());
    TensorMap m;
    m.dtype = DType::U8;
    m.rank = 4;
    m.sizes = {bytes(c.k()), columns, halves, heads, 1};
    m.strides = {row, half, half * halves};
    m.box = {static_cast<uint32_t>(row_bytes_of_tile),
             static_cast<uint32_t>(tile_columns / c.epilogue.sums), static_cast<uint32_t>(halves),
             1, 1};
    return m;
}

std::string defines_of(const QuantShape& s, const RowNorm* norm, const StoreText& text) {
    bool has_bias = norm != nullptr && norm->vectors.size() > 1;
    std::string weights = s.scaled
                              ? quant_defines(s)
                              : str("#define Q_BITS 16\n#define Q_KIND 1\n#define SCALE float\n"
                                    "#define PAIRED ",
                                    s.c.paired() ? 1 : 0, "\n#define HEAD_PAIRS ", head_pairs(s.c),
                                    "\n#define HAS_ZERO 0\n#define ZERO u8\n");
    std::string maps = block_of(s) == 0 ? "" : zeros_of(s) == 2 ? "sz" : "s";
    std::string params;
    std::string values;
    std::string pass;
    for (char m : maps) {
        append(params, str(", const TensorMap& ", m, "_map"));
        append(values, str(", const __grid_constant__ TensorMap ", m, "_map"));
        append(pass, str(", ", m, "_map"));
    }
    return str("#define TA ", c_type(s.c.a.dtype), "\n#define TA_BF16 ",
               s.c.a.dtype == DType::BF16 ? 1 : 0, "\n#define MR ", gemv_rows(s.c), "\n", weights,
               text.defines, "#define BLOCK ", block_of(s), "\n#define ZEROS ", zeros_of(s),
               "\n#define NORM ", norm_define(norm), "\n#define GAIN ",
               norm == nullptr ? "float" : c_type(norm->vectors[0].dtype), "\n#define BIAS ",
               has_bias ? c_type(norm->vectors[1].dtype) : "float", "\n#define MAP_PARAMS ", params,
               "\n#define MAP_VALUES ", values, "\n#define MAP_PASS ", pass, "\n");
}

/// As many stages as half an SM holds: more of them took 3 us more for each product of a chain.
int64_t stages_of(const QuantShape& s, const Arch& arch) {
    int64_t half = arch.shared_per_sm / 2 - 1024;
    int64_t room = std::min(half, arch.shared_per_block) - shared_bytes(s, 0);
    return std::min(room / stage_bytes(s), most_stages);
}

} // namespace

std::vector<TileChoice> tile_choices(const QuantShape& s, const RowNorm* norm, const Arch& arch) {
    std::vector<TileChoice> out;
    if (!runs(s, arch) || (norm != nullptr && !norm->reads_vectors(8))) {
        return out;
    }
    int64_t stages = stages_of(s, arch);
    if (stages < 2) {
        return out;
    }
    const double norm_us = norm == nullptr ? 0 : 0.4; // while the first tiles are on their way
    // A thread stores one result at a time at most: of 8 rows of 16 columns two warps have too
    // many.
    int64_t least = gemv_rows(s.c) > 4 ? 4 : 2;
    for (int share : {8, 4, 2}) {
        if (share < least || (share > least && depth_tiles(s) < share)) {
            continue;
        }
        for (int per_sm : {1, 2}) {
            if (per_sm == 1 || div_up(s.c.n(), tile_columns) > arch.sms) {
                double us = cost_us(s, share, stages, per_sm, arch);
                out.push_back({{share, per_sm}, us + norm_us});
            }
        }
    }
    return out;
}

Emitted emit_tiles(const QuantShape& s, const RowNorm* norm, const TileShare& parameters,
                   const Arch& arch) {
    const Contraction& c = s.c;
    int64_t stages = stages_of(s, arch);
    int64_t share = parameters.share;
    Shares shares = shares_of(s, share, parameters.blocks_per_sm, arch);
    StoreText text = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math", "packed"};
    if (norm != nullptr) {
        l.program.uses.emplace_back("row_total");
    }
    l.program.defines = defines_of(s, norm, text);
    l.program.body = str(device_file("contract"), text.functions, device_file("quant_weights"),
                         device_file("quant_pairs"));
    l.program.family = "quant_pipelined";
    l.entry = "quant_pipelined";
    l.grid = {shares.blocks, 1, 1};
    l.shared = shared_bytes(s, stages);
    if (parameters.blocks_per_sm == 1) {
        l.shared = std::max(l.shared, arch.shared_of_a_lone_block());
        l.alone = true;
    }
    l.args.pointer(c.a).map(c.b, weight_map(s));
    bool constant = c.b_constant && (!s.scaled || s.scale.constant) &&
                    (!s.zero || s.zero->constant) && (norm == nullptr || norm->constant);
    if (block_of(s) > 0) {
        l.args.map(s.scale.operand, parameter_map(s, s.scale));
    }
    if (zeros_of(s) == 2) {
        l.args.map(s.zero->operand, parameter_map(s, *s.zero));
    }
    if (s.scaled) {
        l.args.pointer(s.scale.operand);
    } else {
        l.args.null();
    }
    if (s.zero) {
        l.args.pointer(s.zero->operand);
    } else {
        l.args.null();
    }
    l.args.pointer(c.out).i64(s.scale.column_step).i64(s.zero ? s.zero->column_step : 0);
    l.args.i32(stages).i32(share).i32(shares.few).i32(shares.more).i32(constant ? 1 : 0);
    add_norm_args(l.args, norm);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
