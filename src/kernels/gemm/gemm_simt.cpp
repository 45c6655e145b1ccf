// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/tactics.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t tile = simt_tile;
constexpr int64_t pitch = tile + 8;

/// Whether neighbouring rows lie closer than neighbouring depths.
bool outer_fast(const Loops& outer, const Shape& outer_strides, const Shape& depth_strides) {
    int64_t o = std::abs(outer_strides.back());
    int64_t d = std::abs(depth_strides.back());
    return outer.count() > 1 && o != 0 && (d == 0 || o < d);
}

bool wide_sums(const Contraction& c) {
    std::string_view type = sum_c_type(c.a.dtype, c.b.dtype, c.finish.sum_type);
    return type == "double" || type == "u64";
}

} // namespace

std::string simt_body(const StoreText& t) {
    return str(device_file("contract"), t.functions, t.store_tile(), device_file("simt_core"));
}

int64_t simt_shared(const Contraction& c) {
    return tile * pitch * (wide_sums(c) ? 8 : 4);
}

Tactic simt_tactic(const Contraction& c, const Arch& arch) {
    TileWork w;
    w.blocks = c.batches() * div_up(c.m(), tile) * div_up(c.n(), tile);
    w.resident = 4;
    w.steps = static_cast<double>(div_up(c.k(), 16));
    w.step_flops = 2.0 * tile * tile * 16;
    w.step_us = 0.6;
    w.efficiency = (wide_sums(c) ? 16.0 : 128.0) / arch.mma_per_clock;
    w.l2_bytes = static_cast<double>(w.blocks) * w.steps * 2 * tile * 16 * 4;
    w.dram_bytes = traffic_bytes(c);
    constexpr double beside_model = 2.2; // measured
    return make_tactic("simt", Way::Simt, 0, 0, beside_model * tile_cost_us(w, arch));
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
    l.grid = {c.batches() * div_up(c.m(), tile) * div_up(c.n(), tile), 1, 1};
    l.shared = simt_shared(c);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
