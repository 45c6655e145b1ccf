// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/simt.h"

#include "kernels/contraction/cost.h"

namespace ingot::kernels {

namespace {

constexpr int64_t pitch = simt_tile + 8;

bool wide_sums(const Contraction& c) {
    std::string_view type = sum_c_type(c.a.dtype, c.b.dtype, c.epilogue.sum_type);
    return type == "double" || type == "u64";
}

} // namespace

double simt_cost_us(const Contraction& c, const Arch& arch) {
    TileWork w;
    w.blocks = c.batches() * div_up(c.m(), simt_tile) * div_up(c.n(), simt_tile);
    w.resident = 4;
    w.steps = static_cast<double>(div_up(c.k(), 16));
    w.step_flops = 2.0 * simt_tile * simt_tile * 16;
    w.step_us = 0.6;
    w.efficiency = (wide_sums(c) ? 16.0 : 128.0) / arch.mma_per_clock;
    w.l2_bytes = static_cast<double>(w.blocks) * w.steps * 2 * simt_tile * 16 * 4;
    w.dram_bytes = traffic_bytes(c);
    constexpr double beside_model = 2.2; // measured
    return beside_model * tile_cost_us(w, arch);
}

std::string simt_body(const StoreText& t) {
    return str(device_file("contract"), t.functions, t.store_tile(), device_file("simt_core"));
}

int64_t simt_shared(const Contraction& c) {
    return simt_tile * pitch * (wide_sums(c) ? 8 : 4);
}

} // namespace ingot::kernels
