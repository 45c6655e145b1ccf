// SPDX-License-Identifier: Apache-2.0
// The host side that matrix products and convolutions by mma.sync share: tiles, their text and
// cost.
#pragma once

#include "kernels/contraction/store_text.h"

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

/// The parameters of each algorithm by mma.sync.
struct MmaSplit {
    int bm = 0, bn = 0; // of one of mma_tiles
    int splits = 1;     // of the depth

    const MmaTile& tile() const;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("bm", self.bm);
        field("bn", self.bn);
        field("splits", self.splits);
    }
};
/// Drops the algorithm's tactics that split the depth. The others add along the depth in one order
/// for all tiles: they are batch invariant.
template <class Mma>
void drop_splits(std::vector<Tactic>& tactics) {
    std::erase_if(tactics, [](const Tactic& t) {
        const Mma* m = t.as<Mma>();
        return m != nullptr && m->splits > 1;
    });
}

/// Whether tensor cores multiply these types; those of `arch`.
bool mma_type(DType a, DType b, bool tf32);
bool mma_runs(DType a, DType b, bool tf32, const Arch& arch);
/// Whether converting operands or promoting sums takes registers of a thread.
bool takes_registers(DType type);

struct MmaExtents {
    int64_t batches, m, n, k;
};
double mma_cost_us(const MmaTile& t, MmaExtents x, int splits, DType type, double dram_bytes,
                   const Arch& arch);
/// The bytes that one cp.async can copy, 16, 8, 4, where `aligned(n)` says that runs of n elements
/// of `type` are dense and start at multiples of n; else 0: elements are gathered one by one.
template <class Aligned>
int copy_bytes(DType type, Aligned aligned) {
    for (int bytes : {16, 8, 4}) {
        if (int64_t n = int64_t{8} * bytes / bit_width(type); aligned(n)) {
            return bytes;
        }
    }
    return 0;
}

/// How much longer a product takes whose operand is copied so, relative to 16 bytes.
inline double copy_factor(int bytes) {
    return bytes == 16 ? 1.0 : bytes == 8 ? 1.2 : bytes == 4 ? 1.5 : 2.0;
}

/// The candidates for the number of parts of the depth.
std::vector<int> split_choices(int64_t steps, int bm);

std::string mma_defines(const MmaTile& t, DType type, const Arch& arch, bool b_columns);
std::string mma_body(const StoreText& t, DType type);
/// Sets a launch's blocks: `splits` of them for each tile of the result.
void set_mma_blocks(Launch& l, const Contraction& c, const MmaTile& tile, int splits,
                    const Arch& arch);
/// The arguments `partial` and `splits` of the device text.
void add_split_args(Args& args, int splits, const Arch& arch);
/// The launch; where a tile's blocks form no cluster, they leave partial sums in scratch memory,
/// and a second launch adds those, `vector` results at a time.
Emitted with_split_sum(Launch l, const Contraction& c, int vector, int splits, const Arch& arch);

} // namespace ingot::kernels
