// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/simt.h"
#include "kernels/gemm/algorithms.h"

#include <cstdlib>

namespace ingot::kernels {

namespace {

/// Whether neighbouring rows are closer than neighbouring depths.
bool outer_fast(const Loops& outer, const Shape& outer_strides, const Shape& depth_strides) {
    int64_t o = std::abs(outer_strides.back());
    int64_t d = std::abs(depth_strides.back());
    return outer.count() > 1 && o != 0 && (d == 0 || o < d);
}

} // namespace

Tactic simt_tactic(const Contraction& c, const Arch& arch) {
    return make_tactic(GemmSimt{}, simt_cost_us(c, arch));
}

Emitted emit_simt(const Contraction& c) {
    Emitted e;
    if (c.empty()) {
        return e;
    }
    constexpr int64_t most = int64_t{1} << 31;
    require(c.m() < most && c.n() < most && c.k() < most && c.batches() < most,
            ErrorCode::Unsupported, "a contraction of ", c.batches(), " x ", c.m(), " x ", c.n(),
            " x ", c.k(), " has an extent beyond 2^31");
    StoreText t = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype), "\n", t.defines,
            "#define BN 64\n#define A_ROWS ", outer_fast(c.rows, c.rows.a, c.depth.a) ? 1 : 0,
            "\n#define B_COLUMNS ", outer_fast(c.columns, c.columns.b, c.depth.b) ? 1 : 0, "\n");
    l.program.body = simt_body(t);
    l.program.family = "gemm_simt";
    l.entry = "gemm_simt";
    l.grid = {c.batches() * div_up(c.m(), simt_tile) * div_up(c.n(), simt_tile), 1, 1};
    l.shared = simt_shared(c);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
