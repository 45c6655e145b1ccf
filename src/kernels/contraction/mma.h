// SPDX-License-Identifier: Apache-2.0
// What matrix products and convolutions by mma.sync share on the host: tiles, their text and cost.
#pragma once

#include "kernels/contraction/contraction.h"

#include <algorithm>

namespace ingot::kernels {

/// A block makes bm x bn results, a warp wm x wn; st stages of bk bytes of the depth.
struct MmaTile {
    int bm, bn, bk, st, wm, wn;

    int threads() const { return bm / wm * (bn / wn) * 32; }
    int64_t shared_bytes() const {
        return std::max<int64_t>(int64_t{st} * (bm + bn) * bk, int64_t{bm} * (bn + 8) * 4);
    }
};
std::span<const MmaTile> mma_tiles();

/// Whether tensor cores multiply these.
bool mma_type(DType a, DType b, bool tf32);

struct MmaExtents {
    int64_t batches, m, n, k;
};
double mma_cost_us(const MmaTile& t, MmaExtents x, int splits, DType type, double dram_bytes,
                   const Arch& arch);
/// Into how many parts the depth may be split.
std::vector<int> split_choices(int64_t steps, int bm);

std::string mma_defines(const MmaTile& t, DType type, const Arch& arch, bool b_columns);
std::string mma_body(const StoreText& t);
/// The kernel that sums partial results in scratch memory.
void add_split_sum(Emitted& e, const Contraction& c, int vector, int splits);

} // namespace ingot::kernels
