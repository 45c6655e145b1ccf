// SPDX-License-Identifier: Apache-2.0
// The host side that matrix products and convolutions by wgmma share.
#pragma once

#include "kernels/common/slabs.h"
#include "kernels/contraction/store_text.h"

#include <algorithm>

namespace ingot::kernels {

struct WgmmaTile {
    int groups, bn, stages, k_blocks; // warpgroups that multiply; stages of so many slabs
    /// Measured with 16-bit types, of which a slab takes as long as one of any other type: time of
    /// a slab in a block that has its SM to itself, and in one of those that share it or take turns
    /// there.
    double step_us, shared_step_us;
    int blocks = 1;         // of 64 rows that a warpgroup multiplies at a time
    int resident = 0;       // blocks that are to share an SM; 0: a block takes what it can
    bool ping_pong = false; // every warpgroup has a tile of its own, blocks stay
    /// Measured: whole kernels beside what the model says; the same where a block makes several
    /// tiles.
    double beside_model = 1;
    double in_turn = 1;
    /// TMA stores results (gemm_wgmma_persistent.cuh); with ping_pong.
    bool persistent = false;
    bool early = false; // reads the epilogue's operands before the main loop
    bool apart = false; // the finished tile has shared memory of its own
    int slots = 1;      // of it, one for each block of the cluster that shares the tile

    int bm() const { return 64 * blocks * (ping_pong ? 1 : groups); }
    int threads() const { return 128 * groups + (resident > 0 ? 32 : 128); }
    /// Columns that a warp of gemm_wgmma_pp.cuh stores at a time.
    int wide() const { return bn % 64 == 0 ? 64 : bn % 48 == 0 ? 48 : 32; }
    /// Columns of the last panel of results, if it is narrower than 128 bytes.
    int tail(const Contraction& c) const;
    int64_t shared_bytes() const {
        int64_t pipeline = pipeline_bytes();
        int64_t bars = int64_t{16} * stages;
        if (persistent) { // with two panels of a warpgroup
            int64_t ends = int64_t{2} * groups;
            return pipeline + ends * bm() * 128 + bars + 16 + 16 * ends;
        }
        if (early) {
            return tile_at() > 0 ? tile_at() + int64_t{slots} * slot_rows() * row_bytes()
                                 : std::max(pipeline, tile_bytes()) + bars + 16;
        }
        constexpr int64_t slot = 40; // of a thread and row that the epilogue waits for
        return ping_pong
                   ? pipeline + int64_t{8} * 16 * (wide() + 8) * 4 + 2 * slot * 256 + bars + 16
                   : std::max<int64_t>(pipeline, tile_bytes() + 4 * slot * 128 * groups) + bars;
    }
    /// A tile of sums in shared memory, and where it begins.
    int64_t tile_bytes() const { return bm() * row_bytes(); }
    int64_t tile_at() const {
        return apart ? std::max(pipeline_bytes(), tile_bytes()) + int64_t{16} * stages + 16 : 0;
    }
    int64_t row_bytes() const { return int64_t{4} * (bn + 8); }
    int64_t slot_rows() const { return (bm() + slots - 1) / slots; }
    int64_t pipeline_bytes() const { return int64_t{stages} * k_blocks * 128 * (bm() + bn); }
    /// For contraction_variants: a missing addend is no full operand.
    int variant(int v) const { return persistent ? v & variant_rows : v; }
    /// The tile's part of tactic names: "128x192_pp".
    std::string name() const;
    /// Whether registers hold the sums of a slab beside those of the depth (promoted_sums.cuh).
    bool holds_parts() const;
    /// `tma_store`: TMA can store the results.
    bool takes(const Contraction& c, int64_t steps, int splits, bool tma_store) const;
};
std::span<const WgmmaTile> wgmma_tiles();

/// The parameters of each algorithm by wgmma.
struct WgmmaSplit {
    std::string tile; // WgmmaTile::name
    int splits = 1;   // of the depth: blocks of a cluster

    const WgmmaTile& form() const;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("tile", self.tile);
        field("splits", self.splits);
    }
};

/// Whether wgmma multiplies two operands of these types: f16, bf16, f32 rounded to TF32, e4m3, i8
/// or u8, or u8 by i8.
bool wgmma_types(DType a, DType b, bool tf32);
/// The candidates for the number of parts of the depth: blocks of a cluster.
std::span<const int> wgmma_splits();
/// The time of `tiles`, splits not counted, with this many slabs each.
double wgmma_cost_us(const WgmmaTile& t, const Contraction& c, int64_t tiles, int64_t steps,
                     int splits, double dram_bytes, const Arch& arch);

/// How a kernel gets the deviations of A's rows, by which it divides their sums: it finds them in
/// the rows, or merges the moments that another kernel left (ops/row_moments.h). Residual: merges
/// those of rows that the epilogue reads (Contraction::residual).
enum class Deviations { None, Found, Merged, Residual };

/// The tile with the pipeline stages and the end that suit a launch of this many tiles.
WgmmaTile fitted(const WgmmaTile& tile, const Contraction& c, int64_t tiles, int splits,
                 const Arch& arch);
/// Program, grid, block, cluster and shared memory for this many fitted tiles; the caller adds
/// arguments: maps and result, then these numbers, ... `conv`: 0, or CONV of wgmma_core.cuh.
/// Persistent blocks take a map of the result in its place, then one of the full operand; each is
/// followed by a map of the tail, if there is one.
Launch wgmma_launch(const WgmmaTile& tile, const Contraction& c, int64_t tiles, int splits,
                    int conv, const Arch& arch, Deviations deviations = Deviations::None);
struct WgmmaNumbers {
    int splits = 1;
    bool b_constant = false;
    bool a_batched = false, b_batched = false;
    bool backwards = false; // as in Problem
    double epsilon = 0;     // of deviations
    /// Of A's or the residual's rows, where they are to be merged; dense, in the order of the rows.
    const Operand* moments = nullptr;
};
void add_wgmma_numbers(Args& args, const WgmmaTile& t, const WgmmaNumbers& n);

} // namespace ingot::kernels
