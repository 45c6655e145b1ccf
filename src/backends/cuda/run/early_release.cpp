// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/early_release.h"

#include "base/integers.h"

#include <algorithm>

namespace ingot::cuda {

namespace {

constexpr int64_t step = 32;
constexpr int64_t early = 16; // added to a multiple of `step`

} // namespace

bool releases_early(const kernels::Launch& l, const kernels::Arch& arch) {
    int64_t blocks = l.grid[0] * l.grid[1] * l.grid[2];
    bool fill = l.shared >= arch.shared_of_a_lone_block() && 2 * blocks > arch.sms;
    return arch.has_pdl() && l.cluster == 1 && !l.alone && !fill;
}

int64_t shared_with_release(const kernels::Launch& l, const kernels::Arch& arch) {
    if (!arch.has_pdl()) {
        return l.shared;
    }
    int64_t bytes = std::min(round_up(l.shared, step), arch.shared_per_block);
    bool fits = bytes + early <= arch.shared_per_block;
    return fits && releases_early(l, arch) ? bytes + early : bytes;
}

int64_t most_shared_with_release(int64_t bytes, const kernels::Arch& arch) {
    return std::min(round_up(bytes, step) + early, arch.shared_per_block);
}

} // namespace ingot::cuda
