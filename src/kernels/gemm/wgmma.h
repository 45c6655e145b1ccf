// SPDX-License-Identifier: Apache-2.0
// What matrix products and convolutions by wgmma share on the host.
#pragma once

#include "kernels/gemm/contraction.h"

#include <algorithm>

namespace ingot::kernels {

struct WgmmaTile {
    int groups, bn, stages, deep; // 64 * groups rows; stages of deep * 64 of the depth

    int bm() const { return 64 * groups; }
    int64_t shared_bytes() const {
        int64_t ring = int64_t{stages} * deep * 128 * (bm() + bn);
        return std::max<int64_t>(ring, int64_t{bm()} * (bn + 8) * 4) + int64_t{16} * stages;
    }
};
std::span<const WgmmaTile> wgmma_tiles();

/// Time of `blocks` tiles, splits included, of `steps` times 64 of the depth in all.
double wgmma_cost_us(const WgmmaTile& t, int64_t tiles, int64_t steps, int splits,
                     double dram_bytes, const Arch& arch);

/// Program, block, cluster and shared memory; grid and arguments are the caller's.
Launch wgmma_launch(const WgmmaTile& t, const Contraction& c, int splits, bool conv);

} // namespace ingot::kernels
