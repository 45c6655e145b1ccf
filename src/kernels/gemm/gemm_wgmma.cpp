// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/cost.h"
#include "kernels/contraction/persistent.h"
#include "kernels/gemm/algorithms.h"

#include <algorithm>
#include <optional>

namespace ingot::kernels {

namespace {

/// The axes in one tensor's strides, which other tensors may keep from being merged.
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

/// Whether TMA can load rows with the depth innermost: at most one axis of batch, one of rows, all
/// strides multiples of 16 bytes.
bool loadable(const Operand& o, const Loops& batch_loops, const Shape& batch_strides,
              const Loops& outer_loops, const Shape& outer_strides, const Shape& depth) {
    int64_t chunk = chunk_elements(o.dtype);
    Shape batch = walk_of(batch_loops, batch_strides).strides;
    Shape outer = walk_of(outer_loops, outer_strides).strides;
    bool broadcast = outer_loops.count() > 1 && outer[0] == 0;
    return batch.size() == 1 && outer.size() == 1 && depth.size() == 1 && depth[0] == 1 &&
           o.view.offset % chunk == 0 && all_multiples(batch, chunk) &&
           all_multiples(outer, chunk) && batch[0] >= 0 && outer[0] >= 0 && !broadcast;
}

/// The columns of b for TMA: of pairs, the first ones.
Loops columns_of_b(const Contraction& c) {
    Loops out = c.columns;
    if (c.paired()) {
        out.sizes.pop_back();
        out.b.pop_back();
    }
    return out;
}

bool runs(const Contraction& c, const Arch& arch, bool tf32) {
    int64_t chunk = chunk_elements(c.b.dtype);
    Loops columns = columns_of_b(c);
    bool pairs = !c.paired() || (c.columns.b.back() > 0 && c.columns.b.back() % chunk == 0);
    return arch.has_wgmma() && wgmma_types(c.a.dtype, c.b.dtype, tf32) && pairs && c.k() > 0 &&
           loadable(c.a, c.batch, c.batch.a, c.rows, c.rows.a, c.depth.a) &&
           loadable(c.b, c.batch, c.batch.b, columns, columns.b, c.depth.b);
}

/// The map of one operand's rows.
TensorMap map_of(const Operand& o, const Loops& batch, const Shape& batch_strides,
                 const Loops& outer, const Shape& outer_strides, int64_t depth, int box) {
    bool batched = batch.count() > 1;
    TensorMap m = wgmma_map(o.dtype, batched ? 4 : 2);
    auto rows = static_cast<uint64_t>(outer.count());
    uint64_t element = static_cast<uint64_t>(bit_width(o.dtype)) / 8;
    uint64_t row = element * static_cast<uint64_t>(walk_of(outer, outer_strides).strides[0]);
    // Unused axes still need a stride that TMA accepts.
    if (rows == 1 || row == 0) {
        row = 16 * static_cast<uint64_t>(div_up(depth, chunk_elements(o.dtype)));
    }
    int64_t step = walk_of(batch, batch_strides).strides[0];
    bool steps = batched && step != 0;
    uint64_t slice = steps ? element * static_cast<uint64_t>(step) : row * rows;
    m.sizes = {static_cast<uint64_t>(depth), rows, steps ? static_cast<uint64_t>(batch.count()) : 1,
               1, 1};
    m.strides = {row, slice, slice, slice};
    m.box[1] = static_cast<uint32_t>(box);
    return m;
}

/// The map of b's columns for a tile of this width; the columns of a pair follow one another.
TensorMap map_of_b(const Contraction& c, int tile) {
    Loops columns = columns_of_b(c);
    int box = tile / static_cast<int>(c.epilogue.sums);
    TensorMap m = map_of(c.b, c.batch, c.batch.b, columns, columns.b, c.k(), box);
    if (c.paired()) {
        m.rank = 4;
        m.sizes = {m.sizes[0], 2, m.sizes[1], m.sizes[2], 1};
        m.strides = {static_cast<uint64_t>(c.columns.b.back() * bit_width(c.b.dtype) / 8),
                     m.strides[0], m.strides[1], m.strides[1]};
        m.box = {m.box[0], 2, m.box[1], 1, 1};
    }
    return m;
}

/// The same for a persistent tile, in the order of LoadPairs: halves, 0 2 4 6 of 8 columns, their
/// neighbours, then the next 8.
TensorMap map_of_eighths(const Contraction& c, int tile) {
    TensorMap m = map_of_b(c, tile);
    uint64_t column = m.strides[1];
    m.rank = 5;
    m.sizes = {m.sizes[0], 2, 4, 2, m.sizes[2] / 8};
    m.strides = {m.strides[0], 2 * column, column, 8 * column};
    m.box = {m.box[0], 2, 4, 2, static_cast<uint32_t>(tile / 16)};
    return m;
}

/// Whether TMA can store results: at most one axis of batch, one of rows.
bool can_store_by_tma(const Contraction& c) {
    PersistentEpilogue s = persistent_epilogue(c);
    if (!s.possible) {
        return false;
    }
    for (size_t v : {0, s.full + 1}) {
        if (walk_of(c.batch, c.batch.stored[v]).sizes.size() != 1 ||
            walk_of(c.rows, c.rows.stored[v]).sizes.size() != 1) {
            return false;
        }
    }
    return true;
}

/// Maps for the panels of stored view v, and for the last one if it is narrower.
void add_panel_maps(Args& args, const WgmmaTile& t, const Contraction& c, size_t v) {
    const Operand& o = v == 0 ? c.out : c.epilogue.operands[v - 1];
    int64_t results = c.n() / static_cast<int64_t>(c.epilogue.sums);
    TensorMap m = map_of(o, c.batch, c.batch.stored[v], c.rows, c.rows.stored[v], results, t.bm());
    m.tf32 = false;
    args.map(o, m);
    if (t.tail(c) > 0) {
        m.box[0] = static_cast<uint32_t>(t.tail(c));
        m.swizzle128 = false;
        args.map(o, m);
    }
}

} // namespace

void add_wgmma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch,
                       bool tf32) {
    if (!runs(c, arch, tf32)) {
        return;
    }
    bool tma_store = can_store_by_tma(c);
    std::span<const WgmmaTile> tiles = wgmma_tiles();
    for (size_t i = 0; i < tiles.size(); ++i) {
        const WgmmaTile& t = tiles[i];
        int64_t count = c.batches() * div_up(c.m(), t.bm()) * div_up(c.n(), t.bn);
        int64_t steps = div_up(c.k(), slab_elements(c.a.dtype));
        for (int s : wgmma_splits()) {
            if (!t.takes(c, steps, s, tma_store)) {
                continue;
            }
            double preference = 1 + (t.groups == 1 ? 0.02 * static_cast<double>(i) : 0.0);
            double us = preference * wgmma_cost_us(t, c, count, steps, s, traffic_bytes(c), arch);
            out.push_back(make_tactic(GemmWgmma{{t.name(), s}}, us));
        }
    }
}

void add_centred_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    // Measured: what the deviations cost a block that has few warps for them.
    constexpr double deviations_us = 0.25;
    if (bit_width(c.a.dtype) != 16) {
        return;
    }
    std::vector<Tactic> all;
    add_wgmma_tactics(all, c, arch, false);
    for (const Tactic& t : all) {
        const auto& w = *t.as<GemmWgmma>();
        const WgmmaTile& tile = w.form();
        // Registers of other tiles are taken.
        if (w.splits == 1 && !tile.ping_pong && tile.blocks == 1 && tile.resident == 0) {
            out.push_back(make_tactic(GemmCentred{w}, t.cost_us + deviations_us));
        }
    }
}

namespace {

/// Whether the moments of a's rows are dense in the order in which those lie in memory.
bool moments_in_order(const Operand& a, const Operand& moments) {
    const View& m = moments.view;
    int64_t chunks = m.shape.rbegin()[1];
    int64_t step = 2 * chunks;
    bool dense =
        m.strides.back() == 1 && (chunks == 1 || m.strides.rbegin()[1] == 2) && m.offset % 2 == 0;
    plan::Order order = plan::stride_order(a.view);
    for (size_t i = order.size(); i-- > 0;) {
        auto axis = static_cast<size_t>(order[i]);
        if (axis + 1 < a.view.shape.size() && a.view.shape[axis] != 1) {
            dense = dense && m.strides[axis] == step;
            step *= a.view.shape[axis];
        }
    }
    return dense;
}

} // namespace

void add_merged_tactics(std::vector<Tactic>& out, const Contraction& c, const Operand& moments,
                        const Arch& arch) {
    // For the sums' multiplication; the merging is hidden behind the main loop.
    constexpr double scale_us = 0.1;
    if (bit_width(c.a.dtype) != 16 || !moments_in_order(c.a, moments)) {
        return;
    }
    std::vector<Tactic> all;
    add_wgmma_tactics(all, c, arch, false);
    for (const Tactic& t : all) {
        const auto& w = *t.as<GemmWgmma>();
        const WgmmaTile& tile = w.form();
        // Others have no threads for the factors: a lane of a persistent block has one.
        bool lanes = tile.persistent && tile.blocks <= 2;
        if (lanes || (!tile.ping_pong && tile.resident == 0)) {
            out.push_back(make_tactic(GemmMerged{w}, t.cost_us + scale_us));
        }
    }
}

void add_residual_tactics(std::vector<Tactic>& out, const Contraction& c, const Operand& moments,
                          const Arch& arch) {
    // For the rows' elements; the merging is hidden behind the main loop.
    constexpr double norm_us = 0.1;
    size_t v = *c.residual + 1;
    const Operand& x = c.epilogue.operands[*c.residual];
    bool row_by_row = c.batches() == 1 && c.rows.rank() == 1 && c.columns.rank() == 1 &&
                      (c.m() == 1 || c.rows.stored[v][0] == c.n()) &&
                      in_narrow_vectors(c, *c.residual);
    if (!row_by_row || store_width(c) != 8 || !moments_in_order(x, moments)) {
        return;
    }
    std::vector<Tactic> all;
    add_wgmma_tactics(all, c, arch, false);
    for (const Tactic& t : all) {
        const auto& w = *t.as<GemmWgmma>();
        int64_t tiles = div_up(c.m(), w.form().bm()) * div_up(c.n(), w.form().bn);
        if (fitted(w.form(), c, tiles, w.splits, arch).early) {
            out.push_back(make_tactic(GemmResidual{w}, t.cost_us + norm_us));
        }
    }
}

bool wgmma_stores_moments(const Contraction& c, const WgmmaSplit& parameters) {
    const WgmmaTile& tile = parameters.form();
    // Persistent blocks that convert 16 columns at a time have no whole chunk.
    bool whole = tile.persistent && tile.blocks * tile.bn < 384;
    return (!tile.ping_pong || whole) && stores_moments(c, tile.bn);
}

namespace {

/// The norm of a's rows.
struct Scaling {
    Deviations deviations = Deviations::None;
    double epsilon = 0;
    const Operand* moments = nullptr;
};

Emitted emit_either(const Contraction& plain, const Arch& arch, const WgmmaSplit& parameters,
                    int variant, const Scaling& scaling) {
    const WgmmaTile& form = parameters.form();
    Contraction c = generalised(plain, form.variant(variant));
    int splits = parameters.splits;
    int64_t count = c.batches() * div_up(c.m(), form.bm()) * div_up(c.n(), form.bn);
    WgmmaTile tile = fitted(form, c, count, splits, arch);
    Launch l = wgmma_launch(tile, c, count, splits, 0, arch, scaling.deviations);
    l.args.map(c.a, map_of(c.a, c.batch, c.batch.a, c.rows, c.rows.a, c.k(), tile.bm()));
    l.args.map(c.b,
               tile.persistent && c.paired() ? map_of_eighths(c, tile.bn) : map_of_b(c, tile.bn));
    auto walked = [&c](const Shape& s) {
        return c.batches() > 1 && walk_of(c.batch, s).strides[0] != 0;
    };
    if (tile.persistent) {
        PersistentEpilogue s = persistent_epilogue(c);
        add_panel_maps(l.args, tile, c, 0);
        if (s.full >= 0) {
            add_panel_maps(l.args, tile, c, static_cast<size_t>(s.full) + 1);
        }
    } else {
        l.args.pointer(c.out);
    }
    add_wgmma_numbers(l.args, tile,
                      {.splits = splits,
                       .b_constant = c.b_constant,
                       .a_batched = walked(c.batch.a),
                       .b_batched = walked(c.batch.b),
                       .backwards = c.backwards,
                       .epsilon = scaling.epsilon,
                       .moments = scaling.moments});
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace

Emitted emit_wgmma(const Contraction& c, const Arch& arch, const WgmmaSplit& parameters,
                   int variant) {
    return emit_either(c, arch, parameters, variant, {});
}

Emitted emit_centred(const Contraction& c, const Arch& arch, const GemmCentred& parameters,
                     int variant, double epsilon) {
    return emit_either(c, arch, parameters, variant, {Deviations::Found, epsilon});
}

Emitted emit_residual(const Contraction& c, const Arch& arch, const GemmResidual& parameters,
                      int variant, double epsilon, const Operand& moments) {
    return emit_either(c, arch, parameters, variant, {Deviations::Residual, epsilon, &moments});
}

Emitted emit_merged(const Contraction& c, const Arch& arch, const GemmMerged& parameters,
                    int variant, double epsilon, const Operand& moments) {
    return emit_either(c, arch, parameters, variant, {Deviations::Merged, epsilon, &moments});
}

} // namespace ingot::kernels
