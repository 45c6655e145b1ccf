// SPDX-License-Identifier: Apache-2.0
// The analytic cost model of tiled contractions. Its constants were measured on a GPU of compute
// capability 9.0.
#include "kernels/contraction/cost.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr double launch_us = 0.7;
constexpr double l2_bytes_per_clock = 48; // and SM

} // namespace

double tile_cost_us(const TileWork& w, const Arch& arch) {
    double per_us = arch.mma_per_clock * arch.clock_ghz * 1e3 * w.efficiency; // FLOP per SM
    double step = w.step_flops / per_us;
    auto on_sm = static_cast<double>(div_up(w.blocks, arch.sms));
    double rounds =
        std::max(1.0, static_cast<double>(div_up(w.blocks, int64_t{arch.sms} * w.resident)));
    double depth = std::max(rounds * w.steps * w.step_us, on_sm * w.steps * step);
    double sms = std::clamp<double>(static_cast<double>(w.blocks), 1, arch.sms);
    double l2 = w.l2_bytes / (sms * l2_bytes_per_clock * arch.clock_ghz * 1e3);
    double dram = w.dram_bytes / (arch.dram_gbs * 0.8e3);
    return launch_us + rounds * w.block_us + std::max({depth, l2, dram});
}

double epilogue_of_bytes_us(const Contraction& c, const Arch& arch) {
    if (bit_width(c.a.dtype) != 8 || !arch.has_wgmma()) {
        return 0;
    }
    constexpr double lanes = 128, measured = 6; // instructions
    auto results = static_cast<double>(c.batches() * c.m() * c.n());
    double each = std::max(0.0, value_instructions(c.epilogue) - measured);
    return results * each / (lanes * arch.sms * arch.clock_ghz * 1e3);
}

double traffic_bytes(const Contraction& c) {
    auto m = static_cast<double>(c.m());
    auto n = static_cast<double>(c.n());
    auto k = static_cast<double>(c.k());
    auto batches = static_cast<double>(c.batches());
    double results = m * n / static_cast<double>(c.epilogue.sums);
    double bits = m * k * bit_width(c.a.dtype) + n * k * bit_width(c.b.dtype) +
                  results * bit_width(c.out.dtype);
    return batches * bits / 8 + operand_bytes(c.epilogue);
}

double operand_bytes(const Epilogue& f) {
    double bytes = 0;
    for (const Operand& o : f.operands) {
        double elements = 1;
        for (size_t i = 0; i < o.view.shape.size(); ++i) {
            elements *= o.view.strides[i] == 0 ? 1.0 : static_cast<double>(o.view.shape[i]);
        }
        bytes += elements * bit_width(o.dtype) / 8;
    }
    return bytes;
}

} // namespace ingot::kernels
