// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/mma.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/tactics.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

// Few, so that a model needs few programs. bk is in bytes.
constexpr MmaTile tiles[] = {
    {64, 64, 128, 4, 32, 32}, {128, 128, 64, 4, 64, 64}, {128, 64, 64, 4, 64, 32},
    {64, 32, 128, 4, 32, 16}, {32, 64, 128, 4, 16, 32},  {16, 64, 128, 4, 16, 16},
};
constexpr int tile_count = static_cast<int>(std::size(tiles));

int resident_blocks(const MmaTile& t, const Arch& arch) {
    auto by_shared = arch.shared_per_sm / (t.shared_bytes() + 1024);
    auto by_registers = 65536 / (t.threads() * (t.wm * t.wn >= 4096 ? 240 : 128));
    return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(by_shared, by_registers)));
}

} // namespace

std::span<const MmaTile> mma_tiles() {
    return tiles;
}

bool mma_type(DType a, DType b, bool tf32) {
    bool bytes = a == DType::U8 && b == DType::I8;
    return bytes || (a == b && (a == DType::F16 || a == DType::BF16 || a == DType::I8 ||
                                (a == DType::F32 && tf32)));
}

double mma_cost_us(const MmaTile& t, MmaExtents x, int splits, DType type, double dram_bytes,
                   const Arch& arch) {
    double width = bit_width(type) / 8.0;
    double bk = t.bk / width;
    double rate = width == 4 ? 0.5 : width == 1 ? 2 : 1;
    TileWork w;
    int64_t all = div_up(x.k, static_cast<int64_t>(bk));
    w.blocks = x.batches * div_up(x.m, t.bm) * div_up(x.n, t.bn) * splits;
    w.resident = resident_blocks(t, arch);
    w.steps = static_cast<double>(div_up(all, splits));
    w.step_flops = 2.0 * t.bm * t.bn * bk;
    w.step_us = 0.20 * t.bk / 128 * (t.wm * t.wn >= 2048 ? 1.7 : 1.0);
    w.efficiency = (arch.cc == 90 || arch.cc == 100 ? 0.48 : 0.85) * rate *
                   (t.wm * t.wn >= 4096   ? 1.0
                    : t.wm * t.wn >= 1024 ? 0.85
                                          : 0.65);
    w.block_us = 2.2;
    w.l2_bytes = static_cast<double>(w.blocks) * w.steps * (t.bm + t.bn) * t.bk;
    w.dram_bytes = dram_bytes;
    double us = tile_cost_us(w, arch);
    if (splits > 1) {
        double partial = 8.0 * splits * static_cast<double>(x.batches * x.m * x.n);
        us += arch.has_cluster() ? 3.0 : 1.5 + partial / (arch.dram_gbs * 2e3);
    }
    // Where wgmma runs too, what was measured of these tiles lies this far above the model.
    constexpr double beside_wgmma = 1.7;
    return arch.has_wgmma() ? beside_wgmma * us : us;
}

std::vector<int> split_choices(int64_t steps, int bm) {
    std::vector<int> out = {1};
    for (int s : {2, 4, 8}) {
        if (steps >= int64_t{2} * s && bm % s == 0) {
            out.push_back(s);
        }
    }
    return out;
}

std::string mma_defines(const MmaTile& t, DType type, const Arch& arch, bool b_columns) {
    bool bytes = bit_width(type) == 8;
    std::string_view op = type == DType::F16    ? "mma_f16"
                          : type == DType::BF16 ? "mma_bf16"
                          : type == DType::F32  ? "mma_tf32"
                          : type == DType::U8   ? "mma_u8s8"
                                                : "mma_s8";
    std::string_view sums = bytes ? "i32" : "float";
    return str("#define IN ", c_type(type), "\n#define MMA(c, a, b0, b1) ", op, "((", sums,
               "*)(c), a, b0, b1)\n#define TF32 ", type == DType::F32 ? 1 : 0, "\n#define BM ",
               t.bm, "\n#define BN ", t.bn, "\n#define BK ", t.bk * 8 / bit_width(type),
               "\n#define ST ", t.st, "\n#define WM ", t.wm, "\n#define WN ", t.wn,
               "\n#define B_COLUMNS ", b_columns ? 1 : 0, "\n#define CLUSTER ",
               arch.has_cluster() ? 1 : 0, "\n");
}

std::string mma_body(const StoreText& t) {
    return str(device_file("contract"), t.functions, t.store_tile(), device_file("cluster_sum"),
               device_file("mma_core"));
}

void add_split_sum(Emitted& e, const Contraction& c, int vector, int splits) {
    StoreText t = store_text(c, vector);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = t.defines;
    l.program.body = str(device_file("contract"), t.functions);
    l.program.family = "split_sum";
    l.entry = "split_sum";
    l.grid = {div_up(c.batches() * c.m() * c.n(), int64_t{256} * vector), 1, 1};
    l.args.scratch(0).pointer(c.out).i32(splits);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    e.launches.push_back(std::move(l));
}

namespace {

struct Side {
    bool usable = false;
    bool aligned = false;
};

/// How rows with the depth inside can be loaded.
Side depth_side(const Operand& o, const Shape& batch, const Loops& outer, const Shape& strides,
                const Shape& depth) {
    int64_t chunk = 128 / bit_width(o.dtype);
    int64_t far = reach(outer, strides);
    Side s;
    s.usable = depth.size() == 1 && far >= 0 && far < (int64_t{1} << 32);
    s.aligned = s.usable && depth[0] == 1 && o.view.offset % chunk == 0 &&
                all_multiples(batch, chunk) && all_multiples(strides, chunk);
    return s;
}

/// Whether B can be loaded with the columns inside, in aligned chunks.
bool columns_inside(const Contraction& c) {
    constexpr int64_t chunk = 8;
    Shape outer = c.columns.b;
    outer.pop_back();
    return bit_width(c.b.dtype) == 16 && c.depth.rank() == 1 && c.columns.b.back() == 1 &&
           c.columns.sizes.back() % chunk == 0 && c.b.view.offset % chunk == 0 &&
           all_multiples(outer, chunk) && all_multiples(c.depth.b, chunk) &&
           all_multiples(c.batch.b, chunk);
}

} // namespace

void add_mma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch, bool tf32) {
    Side a = depth_side(c.a, c.batch.a, c.rows, c.rows.a, c.depth.a);
    Side b = depth_side(c.b, c.batch.b, c.columns, c.columns.b, c.depth.b);
    bool columns = !b.aligned && columns_inside(c);
    if (!mma_type(c.a.dtype, c.b.dtype, tf32) || !a.usable || !(b.usable || columns) ||
        c.k() == 0 || c.empty()) {
        return;
    }
    double slow = (a.aligned ? 1 : 2) * (b.aligned || columns ? 1.0 : 2.0);
    // Measured: what a product takes less than the model says, and a convolution does not.
    constexpr double beside_wgmma_us = 3;
    constexpr double least_us = 1.5;
    for (int i = 0; i < tile_count; ++i) {
        const MmaTile& t = tiles[i];
        // Larger warp tiles would spill.
        int most = slow > 1 ? 1024 : c.a.dtype == DType::F32 ? 2048 : 4096;
        if (t.wm * t.wn > most) {
            continue;
        }
        int64_t steps = div_up(c.k(), t.bk * 8 / bit_width(c.a.dtype));
        for (int s : split_choices(steps, t.bm)) {
            double us = slow * mma_cost_us(t, {c.batches(), c.m(), c.n(), c.k()}, s, c.a.dtype,
                                           traffic_bytes(c), arch);
            us = arch.has_wgmma() ? std::max(least_us, us - beside_wgmma_us) : us;
            out.push_back(make_tactic(str("mma_", t.bm, "x", t.bn, "_s", s), Way::Mma, i, s, us));
        }
    }
}

Emitted emit_mma(const Contraction& c, const Arch& arch, const Tactic& tactic) {
    const MmaTile& tile = tiles[tactic.p[1]];
    int splits = tactic.p[2];
    Side a = depth_side(c.a, c.batch.a, c.rows, c.rows.a, c.depth.a);
    Side b = depth_side(c.b, c.batch.b, c.columns, c.columns.b, c.depth.b);
    bool columns = !b.aligned && columns_inside(c);
    int vector = store_width(c);
    StoreText t = store_text(c, vector);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str(mma_defines(tile, c.a.dtype, arch, columns), t.defines, "#define A_ALIGNED ", a.aligned,
            "\n#define B_ALIGNED ", b.aligned || columns, "\n");
    l.program.body = mma_body(t);
    l.program.family = "gemm_mma";
    l.entry = "gemm_mma";
    bool partial = splits > 1 && !arch.has_cluster();
    l.grid = {c.batches() * div_up(c.m(), tile.bm) * div_up(c.n(), tile.bn) * splits, 1, 1};
    l.block = tile.threads();
    l.shared = tile.shared_bytes();
    l.cluster = partial ? 1 : splits;
    l.args.pointer(c.a).pointer(c.b).pointer(c.out);
    if (partial) {
        l.args.scratch(0);
    } else {
        l.args.null();
    }
    l.args.i32(splits);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    if (partial) {
        e.scratch = int64_t{4} * splits * c.batches() * c.m() * c.n();
        add_split_sum(e, c, vector, splits);
    }
    return e;
}

} // namespace ingot::kernels
