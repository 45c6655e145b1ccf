// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch.h"

#include "base/error.h"

namespace ingot::kernels {

namespace {

constexpr int64_t kib = 1024;
constexpr int64_t mib = 1024 * kib;

// Sources: CUDA programming guide (limits per compute capability); rates are those of the largest
// GPU of each kind, measured for 9.0.
const Arch rows[] = {
    // cc nvrtc sms shared/block shared/SM threads/SM L2 GB/s FLOP/clock GHz
    {80, "sm_80", 108, 163 * kib, 164 * kib, 2048, 40 * mib, 1400, 2048, 1.4},
    {86, "sm_86", 84, 99 * kib, 100 * kib, 1536, 6 * mib, 850, 512, 1.7},
    {89, "sm_89", 128, 99 * kib, 100 * kib, 1536, 72 * mib, 900, 512, 2.5},
    {90, "sm_90a", 132, 227 * kib, 228 * kib, 2048, 50 * mib, 4200, 4096, 1.7},
    {100, "sm_100a", 148, 227 * kib, 228 * kib, 2048, 126 * mib, 7000, 8192, 1.8},
    {120, "sm_120", 170, 99 * kib, 100 * kib, 1536, 96 * mib, 1600, 512, 2.4},
};

} // namespace

std::span<const Arch> known_archs() {
    return rows;
}

bool runs_on(const Arch& made_for, const Arch& device) {
    return (!made_for.has_wgmma() || device.has_wgmma()) &&
           (!made_for.has_tma() || device.has_tma()) &&
           (!made_for.has_fp8_mma() || device.has_fp8_mma()) &&
           made_for.shared_per_block <= device.shared_per_block;
}

const Arch& arch_of(int cc) {
    const Arch* found = nullptr;
    for (const Arch& a : rows) {
        // Code for 9.0a and 10.0a runs on exactly that architecture.
        if (a.cc <= cc && (a.cc / 10 == cc / 10 || found == nullptr || a.nvrtc.back() != 'a')) {
            found = &a;
        }
    }
    require(found != nullptr, ErrorCode::Unsupported, "compute capability ", cc / 10, '.', cc % 10,
            " is not supported: GPUs from 8.0 (Ampere) on are");
    return *found;
}

} // namespace ingot::kernels
