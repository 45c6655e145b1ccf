// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/cost.h"
#include "kernels/gemm/algorithms.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

struct Side {
    bool usable = false;
    int aligned = 0; // bytes that one copy takes; 0: an element at a time
};

/// The load of rows with the depth innermost.
Side depth_side(const Operand& o, const Shape& batch, const Loops& outer, const Shape& strides,
                const Shape& depth) {
    int64_t far = reach(outer, strides);
    Side s;
    s.usable = depth.size() == 1 && far >= 0 && far < (int64_t{1} << 32);
    if (s.usable && depth[0] == 1) {
        s.aligned = copy_bytes(o.dtype, [&](int64_t n) {
            return o.view.offset % n == 0 && all_multiples(batch, n) && all_multiples(strides, n);
        });
    }
    return s;
}

/// Whether B can be loaded with the columns innermost, in aligned chunks.
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
    bool columns = b.aligned != 16 && columns_inside(c);
    if (!mma_runs(c.a.dtype, c.b.dtype, tf32, arch) || !a.usable || !(b.usable || columns) ||
        c.k() == 0 || c.empty()) {
        return;
    }
    double slow = copy_factor(a.aligned) * copy_factor(columns ? 16 : b.aligned);
    int copied = std::min(a.aligned, columns ? 16 : b.aligned);
    // Measured: products take this much less than the model, convolutions do not.
    constexpr double beside_wgmma_us = 3;
    constexpr double least_us = 1.5;
    for (const MmaTile& t : mma_tiles()) {
        // Larger warp tiles would spill.
        int most = copied == 0 ? 1024 : copied < 16 || takes_registers(c.a.dtype) ? 2048 : 4096;
        if (t.wm * t.wn > most) {
            continue;
        }
        int64_t steps = div_up(c.k(), t.bk * 8 / bit_width(c.a.dtype));
        for (int s : split_choices(steps, t.bm)) {
            double us = slow * mma_cost_us(t, {c.batches(), c.m(), c.n(), c.k()}, s, c.a.dtype,
                                           traffic_bytes(c), arch);
            us = arch.has_wgmma() ? std::max(least_us, us - beside_wgmma_us) : us;
            us += epilogue_of_bytes_us(c, arch);
            out.push_back(make_tactic(GemmMma{{t.bm, t.bn, s}}, us));
        }
    }
}

bool mma_stores_moments(const Contraction& c, const Arch& arch, const GemmMma& parameters) {
    return stores_moments(c, parameters.tile().bn) &&
           (parameters.splits == 1 || arch.has_cluster());
}

Emitted emit_mma(const Contraction& c, const Arch& arch, const GemmMma& parameters) {
    const MmaTile& tile = parameters.tile();
    int splits = parameters.splits;
    Side a = depth_side(c.a, c.batch.a, c.rows, c.rows.a, c.depth.a);
    Side b = depth_side(c.b, c.batch.b, c.columns, c.columns.b, c.depth.b);
    bool columns = b.aligned != 16 && columns_inside(c);
    int vector = store_width(c);
    StoreText t = store_text(c, vector);
    Launch l;
    l.program.uses = {"types", "math"};
    if (c.moments) {
        l.program.uses.emplace_back("chunk_moments");
    }
    l.program.defines =
        str(mma_defines(tile, c.a.dtype, arch, columns), t.defines, "#define A_ALIGNED ", a.aligned,
            "\n#define B_ALIGNED ", columns ? 16 : b.aligned, "\n");
    l.program.body = mma_body(t, c.a.dtype);
    l.program.family = "gemm_mma";
    l.entry = "gemm_mma";
    set_mma_blocks(l, c, tile, splits, arch);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out);
    add_split_args(l.args, splits, arch);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    return with_split_sum(std::move(l), c, vector, splits, arch);
}

} // namespace ingot::kernels
