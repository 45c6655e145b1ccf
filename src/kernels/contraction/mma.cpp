// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/mma.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

// Few, so that a model needs few programs. bk is in bytes.
constexpr MmaTile tiles[] = {
    {64, 64, 128, 4, 32, 32}, {128, 128, 64, 4, 64, 64}, {128, 64, 64, 4, 64, 32},
    {64, 32, 128, 4, 32, 16}, {32, 64, 128, 4, 16, 32},  {16, 64, 128, 4, 16, 16},
};

int resident_blocks(const MmaTile& t, const Arch& arch) {
    auto by_shared = arch.shared_per_sm / (t.shared_bytes() + 1024);
    auto by_registers = 65536 / (t.threads() * (t.wm * t.wn >= 4096 ? 240 : 128));
    return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(by_shared, by_registers)));
}

} // namespace

std::span<const MmaTile> mma_tiles() {
    return tiles;
}

const MmaTile& MmaSplit::tile() const {
    const auto* t = std::find_if(std::begin(tiles), std::end(tiles),
                                 [this](const MmaTile& m) { return m.bm == bm && m.bn == bn; });
    CHECK(t != std::end(tiles), "no tile of ", bm, " x ", bn);
    return *t;
}

bool mma_type(DType a, DType b, bool tf32) {
    bool bytes = a == DType::U8 && b == DType::I8;
    return bytes || (a == b && (a == DType::F16 || a == DType::BF16 || a == DType::I8 ||
                                a == DType::F8E4M3 || (a == DType::F32 && tf32)));
}

bool takes_registers(DType type) {
    return type == DType::F32 || type == DType::F8E4M3;
}

bool mma_runs(DType a, DType b, bool tf32, const Arch& arch) {
    return mma_type(a, b, tf32) && (a != DType::F8E4M3 || arch.has_fp8_mma());
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
    // Where wgmma runs too, these tiles measured this factor above the model.
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
    std::string_view op = type == DType::F16      ? "mma_f16"
                          : type == DType::BF16   ? "mma_bf16"
                          : type == DType::F32    ? "mma_tf32"
                          : type == DType::F8E4M3 ? arch.cc == 90 ? "mma_e4m3" : "mma_promoted_e4m3"
                          : type == DType::U8     ? "mma_u8s8"
                                                  : "mma_s8";
    std::string_view sums = is_float(type) ? "float" : "i32";
    return str("#define IN ", c_type(type), "\n#define MMA(c, a, b0, b1) ", op, "((", sums,
               "*)(c), a, b0, b1)\n#define TF32 ", type == DType::F32 ? 1 : 0, "\n#define BM ",
               t.bm, "\n#define BN ", t.bn, "\n#define BK ", t.bk * 8 / bit_width(type),
               "\n#define ST ", t.st, "\n#define WM ", t.wm, "\n#define WN ", t.wn,
               "\n#define B_COLUMNS ", b_columns ? 1 : 0, "\n#define CLUSTER ",
               arch.has_cluster() ? 1 : 0, "\n");
}

std::string mma_body(const StoreText& t, DType type) {
    return str(type == DType::F8E4M3 ? device_file("mma_f8") : "", device_file("contract"),
               t.functions, t.store_tile(), device_file("cluster_sum"), device_file("mma_core"));
}

/// Whether the blocks of a tile leave their sums in scratch memory.
static bool sums_in_scratch(int splits, const Arch& arch) {
    return splits > 1 && !arch.has_cluster();
}

void set_mma_blocks(Launch& l, const Contraction& c, const MmaTile& tile, int splits,
                    const Arch& arch) {
    l.grid = {c.batches() * div_up(c.m(), tile.bm) * div_up(c.n(), tile.bn) * splits, 1, 1};
    l.block = tile.threads();
    l.shared = tile.shared_bytes();
    l.cluster = sums_in_scratch(splits, arch) ? 1 : splits;
}

void add_split_args(Args& args, int splits, const Arch& arch) {
    if (sums_in_scratch(splits, arch)) {
        args.scratch(0);
    } else {
        args.null();
    }
    args.i32(splits);
}

static Launch split_sum(const Contraction& c, int vector, int splits) {
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
    return l;
}

Emitted with_split_sum(Launch l, const Contraction& c, int vector, int splits, const Arch& arch) {
    Emitted e;
    e.launches.push_back(std::move(l));
    if (sums_in_scratch(splits, arch)) {
        e.scratch = int64_t{4} * splits * c.batches() * c.m() * c.n();
        e.launches.push_back(split_sum(c, vector, splits));
    }
    return e;
}

} // namespace ingot::kernels
