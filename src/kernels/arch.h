// SPDX-License-Identifier: Apache-2.0
// Arch: the properties of a GPU for families and the cost model. One table row per compute
// capability; a driver overwrites the values that the device reports.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ingot::kernels {

struct Arch {
    int cc = 90;                       // compute capability, major * 10 + minor
    std::string_view nvrtc = "sm_90a"; // --gpu-architecture
    int sms = 132;
    int64_t shared_per_block = 232448; // dynamic shared memory limit of a block
    int64_t shared_per_sm = 233472;
    int threads_per_sm = 2048;
    int64_t l2_bytes = 50 << 20;
    double dram_gbs = 4200;      // read + write
    double mma_per_clock = 4096; // dense f16 FLOP per SM and clock, f32 accumulation
    double clock_ghz = 1.7;

    /// Dynamic shared memory of which no two blocks fit an SM. A kernel that starts beside another
    /// finds some SMs fuller than others, its blocks go in pairs to the emptier ones, and so do
    /// those of all kernels after it: 132 blocks lay on 68 SMs.
    int64_t shared_of_a_lone_block() const { return shared_per_sm / 2; }

    bool has_wgmma() const { return cc == 90; }
    bool has_tma() const { return cc >= 90; }
    bool has_cluster() const { return cc >= 90; }
    bool has_pdl() const { return cc >= 90; }
    bool has_fp8_mma() const { return cc >= 89; }
};

std::span<const Arch> known_archs();
/// Whether kernels made for one architecture run on another.
bool runs_on(const Arch& made_for, const Arch& device);
/// The row of the newest architecture that is not newer than `cc`. Errors: Unsupported below 8.0.
const Arch& arch_of(int cc);

} // namespace ingot::kernels
