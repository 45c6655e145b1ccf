// SPDX-License-Identifier: Apache-2.0
#include "kernels/figures.h"

#include "base/integers.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

// All compute capabilities from 8.0 on have these (CUDA programming guide).
constexpr int64_t registers_per_sm = 65536;
constexpr int64_t register_unit = 256;    // allocated for a warp
constexpr int64_t reserved_shared = 1024; // of a block
constexpr int64_t warp = 32;

int64_t most_blocks(const Arch& arch) {
    return arch.cc == 86 ? 16 : arch.threads_per_sm / 64;
}

} // namespace

plan::DeviceFigures figures_of(const Arch& arch, bool tf32) {
    plan::DeviceFigures f;
    f.name = arch.nvrtc;
    f.capability = arch.cc;
    f.sms = arch.sms;
    f.clock_ghz = arch.clock_ghz;
    f.dram_gbs = arch.dram_gbs;
    double clocks = arch.sms * arch.clock_ghz * 1e9;
    double scalar_per_clock = arch.cc == 80 ? 128 : 256; // two a lane
    f.product_flops = clocks * arch.mma_per_clock;
    f.scalar_flops = clocks * scalar_per_clock;
    f.has_fp8 = arch.has_fp8_mma();
    f.tf32 = tf32;
    return f;
}

int blocks_per_sm(const Arch& arch, int64_t threads, int registers, int64_t shared) {
    int64_t warps = div_up(std::max<int64_t>(threads, 1), warp);
    int64_t blocks = std::min(most_blocks(arch), arch.threads_per_sm / (warps * warp));
    blocks = std::min(blocks, arch.shared_per_sm / (shared + reserved_shared));
    if (registers > 0) {
        int64_t of_warp = div_up(registers * warp, register_unit) * register_unit;
        blocks = std::min(blocks, registers_per_sm / of_warp / warps);
    }
    return static_cast<int>(std::max<int64_t>(blocks, 1));
}

} // namespace ingot::kernels
