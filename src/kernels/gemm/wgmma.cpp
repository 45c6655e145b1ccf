// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/wgmma.h"

#include "kernels/gemm/mma.h"
#include "kernels/gemm/tactics.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

// Few, so that a model needs few programs.
constexpr WgmmaTile tiles[] = {
    {1, 64, 6, 1},
    {2, 128, 4, 1},
    {1, 32, 6, 1},
    {2, 256, 4, 1},
    {1, 48, 6, 1},
    {2, 192, 4, 1},
    {2, 144, 5, 1},
    {2, 128, 3, 1, 1, 2},
    {2, 160, 4, 1, 2},
    {2, 128, 4, 1, 2},
    {2, 160, 5, 1, 2, 0, true},
    {2, 128, 5, 1, 2, 0, true},
    {2, 64, 4, 1, 1, 2},
};
constexpr int tile_count = static_cast<int>(std::size(tiles));

/// The axes as one tensor walks them, which other tensors may keep from being merged.
struct Walk {
    Shape sizes, strides;
};
Walk walk_of(const Loops& loops, const Shape& strides) {
    View v{loops.sizes, strides};
    plan::LoopNest nest = plan::merged_loops(std::span(&v, 1), plan::row_major(v.rank()));
    if (nest.sizes.empty()) {
        return {{1}, {0}};
    }
    return {nest.sizes, nest.strides[0]};
}

/// Whether the copy engine can load rows with the depth inside: at most one axis of batch, one of
/// rows, everything in multiples of 16 bytes.
bool loadable(const Operand& o, const Loops& batch_loops, const Shape& batch_strides,
              const Loops& outer_loops, const Shape& outer_strides, const Shape& depth) {
    constexpr int64_t chunk = 8;
    Shape batch = walk_of(batch_loops, batch_strides).strides;
    Shape outer = walk_of(outer_loops, outer_strides).strides;
    bool broadcast = outer_loops.count() > 1 && outer[0] == 0;
    return batch.size() == 1 && outer.size() == 1 && depth.size() == 1 && depth[0] == 1 &&
           o.view.offset % chunk == 0 && all_multiples(batch, chunk) &&
           all_multiples(outer, chunk) && batch[0] >= 0 && outer[0] >= 0 && !broadcast;
}

bool runs(const Contraction& c, const Arch& arch) {
    bool types = c.a.dtype == c.b.dtype && (c.a.dtype == DType::F16 || c.a.dtype == DType::BF16);
    return arch.has_wgmma() && types && c.k() > 0 &&
           loadable(c.a, c.batch, c.batch.a, c.rows, c.rows.a, c.depth.a) &&
           loadable(c.b, c.batch, c.batch.b, c.columns, c.columns.b, c.depth.b);
}

/// Rows of one operand as the copy engine walks them.
TensorMap map_of(const Operand& o, const Loops& batch, const Shape& batch_strides,
                 const Loops& outer, const Shape& outer_strides, int64_t depth, int box) {
    TensorMap m;
    m.dtype = o.dtype;
    bool batched = batch.count() > 1;
    auto rows = static_cast<uint64_t>(outer.count());
    uint64_t row = 2 * static_cast<uint64_t>(walk_of(outer, outer_strides).strides[0]);
    m.rank = batched ? 4 : 2;
    // Axes that are not walked still need a stride that the copy engine accepts.
    row = rows == 1 || row == 0 ? 16 * static_cast<uint64_t>(div_up(depth, 8)) : row;
    int64_t step = walk_of(batch, batch_strides).strides[0];
    bool steps = batched && step != 0;
    uint64_t slice = steps ? 2 * static_cast<uint64_t>(step) : row * rows;
    m.sizes = {static_cast<uint64_t>(depth), rows, steps ? static_cast<uint64_t>(batch.count()) : 1,
               1, 1};
    m.strides = {row, slice, slice, slice};
    m.box = {64, static_cast<uint32_t>(box), 1, 1, 1};
    return m;
}

} // namespace

std::span<const WgmmaTile> wgmma_tiles() {
    return tiles;
}

std::string WgmmaTile::name() const {
    return str(bm(), "x", bn, ping_pong ? "_pp" : resident > 0 ? str("_r", resident) : "");
}

bool WgmmaTile::takes(const Contraction& c, int splits) const {
    bool whole = groups == 1 || splits == 1;
    return whole && (!ping_pong || vector_columns(c));
}

namespace {

/// Clocks of one step of 64: the tensor cores', or those in which shared memory takes A and B in
/// and gives them out, A once and B once for every 64 rows.
double step_clocks(const WgmmaTile& t) {
    double rows = t.bm();
    double multiply = rows * t.bn / 32;
    double shared = rows / 64 * (64 + t.bn) + rows + t.bn;
    return std::max(multiply, shared);
}

} // namespace

double wgmma_cost_us(const WgmmaTile& t, int64_t count, int64_t steps, int splits,
                     double dram_bytes, const Arch& arch) {
    TileWork w;
    w.blocks = count * splits;
    w.resident = static_cast<int>(
        std::max<int64_t>(1, std::min(arch.shared_per_sm / (t.shared_bytes() + 1024),
                                      int64_t{65536} / (int64_t{t.groups + 1} * 128 * 168))));
    w.steps = static_cast<double>(div_up(steps, splits));
    w.step_flops = 2.0 * t.bm() * t.bn * 64;
    w.step_us = 0.155;
    w.l2_bytes = static_cast<double>(w.blocks) * w.steps * (t.bm() + t.bn) * 128;
    w.dram_bytes = dram_bytes;
    double area = t.bm() * t.bn / (128.0 * 128);
    double outside = 0;
    if (t.groups == 1) {
        w.efficiency = t.bn < 64 ? 0.6 : 0.7;
        w.block_us = 0.7 + 0.9 * area;
    } else {
        w.efficiency = 0.95 * t.bm() * t.bn / 32 / step_clocks(t);
        double start = 1.5;
        double store = 1.6 * area;
        w.block_us = start + store;
        if (t.overlaps()) {
            // Only the first start and the last store are seen, where there is enough to multiply.
            double depth = w.steps * step_clocks(t) / (0.95e3 * arch.clock_ghz);
            w.efficiency *= depth / std::max(depth, (depth + store) / 2);
            w.resident = 2;
            w.block_us = 0;
            outside = start + store;
        }
    }
    double us = tile_cost_us(w, arch) + outside;
    if (splits > 1) {
        // Clusters leave SMs unused: more so where the grid would fill most of them.
        us += 0.3 + 0.33 * splits + (w.blocks > arch.sms * 3 / 4 ? 1.8 : 0.0);
    }
    return us;
}

Launch wgmma_launch(const WgmmaTile& t, const Contraction& c, int64_t count, int splits, int conv,
                    const Arch& arch) {
    StoreText text = store_text(c, vector_columns(c) ? 8 : 1);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define WGMMA_TYPE \"", c.a.dtype == DType::F16 ? "f16" : "bf16", "\"\n#define NC ",
            t.groups, "\n#define MB ", t.blocks, "\n#define BN ", t.bn, "\n#define ST ", t.stages,
            "\n#define DEEP ", t.deep, "\n#define RESIDENT ", t.resident, "\n#define PING_PONG ",
            t.ping_pong ? 1 : 0, "\n#define CONV ", conv, "\n#define BATCHED ",
            conv == 0 && c.batches() > 1 ? 1 : 0, "\n", text.defines);
    l.program.body =
        str(device_file("wgmma"), device_file("contract"), text.functions,
            device_file("store_tile"), device_file("cluster_sum"), device_file("wgmma_core"));
    l.program.family = t.ping_pong ? "gemm_wgmma_pp" : "gemm_wgmma";
    l.entry = std::string(l.program.family);
    l.grid = {t.ping_pong ? std::min<int64_t>(count, arch.sms) : count * splits, 1, 1};
    l.block = t.threads();
    l.shared = t.shared_bytes();
    l.cluster = splits;
    return l;
}

void add_wgmma_numbers(Args& args, const WgmmaTile& t, int splits, bool b_constant, bool a_batched,
                       bool b_batched) {
    if (!t.ping_pong) {
        args.i32(splits);
    }
    args.i32(b_constant ? 1 : 0).i32(a_batched ? 1 : 0).i32(b_batched ? 1 : 0);
}

void add_wgmma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    if (!runs(c, arch)) {
        return;
    }
    for (int i = 0; i < tile_count; ++i) {
        const WgmmaTile& t = tiles[i];
        int64_t count = c.batches() * div_up(c.m(), t.bm()) * div_up(c.n(), t.bn);
        for (int s : split_choices(div_up(c.k(), 64), t.bm())) {
            if (!t.takes(c, s)) {
                continue;
            }
            double preference = 1 + (t.groups == 1 ? 0.02 * i : 0.0);
            double us =
                preference * wgmma_cost_us(t, count, div_up(c.k(), 64), s, traffic_bytes(c), arch);
            out.push_back(make_tactic(str("wgmma_", t.name(), "_s", s), Way::Wgmma, i, s, us));
        }
    }
}

Emitted emit_wgmma(const Contraction& c, const Arch& arch, const Tactic& tactic) {
    const WgmmaTile& tile = tiles[tactic.p[1]];
    int splits = tactic.p[2];
    int64_t count = c.batches() * div_up(c.m(), tile.bm()) * div_up(c.n(), tile.bn);
    Launch l = wgmma_launch(tile, c, count, splits, 0, arch);
    l.args.map(c.a, map_of(c.a, c.batch, c.batch.a, c.rows, c.rows.a, c.k(), tile.bm()));
    l.args.map(c.b, map_of(c.b, c.batch, c.batch.b, c.columns, c.columns.b, c.k(), tile.bn));
    auto walked = [&c](const Shape& s) {
        return c.batches() > 1 && walk_of(c.batch, s).strides[0] != 0;
    };
    l.args.pointer(c.out);
    add_wgmma_numbers(l.args, tile, splits, c.b_constant, walked(c.batch.a), walked(c.batch.b));
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
