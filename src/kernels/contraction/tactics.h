// SPDX-License-Identifier: Apache-2.0
// The ways in which a contraction can run: each lists its parameter choices with their costs, and
// emits launches. Tactic::p[0] is the Way.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

enum class Way : int { Simt, Mma, Wgmma, Gemv, Ring, NormedRing, Short, Tiles, NormedTiles };

inline Tactic make_tactic(std::string name, Way way, int a, int b, double cost_us) {
    return {std::move(name), {static_cast<int>(way), a, b}, cost_us};
}

/// Any element types, any strides, any GPU.
Tactic simt_tactic(const Contraction& c, const Arch& arch);
Emitted emit_simt(const Contraction& c);
/// Text in front of a kernel that uses simt_core.cuh, and the shared memory it needs.
std::string simt_body(const StoreText& t);
int64_t simt_shared(const Contraction& c);
constexpr int64_t simt_tile = 64;

/// f16, bf16, f32 as TF32, i8 on tensor cores by mma.sync.
void add_mma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch, bool tf32);
Emitted emit_mma(const Contraction& c, const Arch& arch, const Tactic& t);

/// f16, bf16, f32 as TF32 by wgmma and the copy engine (9.0).
void add_wgmma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch, bool tf32);
Emitted emit_wgmma(const Contraction& c, const Arch& arch, const Tactic& t);

/// Up to 8 rows or columns.
void add_gemv_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_gemv(const Contraction& c, const Tactic& t);

/// A thread for each result, where the depth is short. Sums in the order of the depth.
void add_short_tactic(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_short(const Contraction& c);

/// All tactics, best first, and their launches: for families whose work is a contraction. Those of
/// mma.sync add along the whole depth by one instruction, in whatever tile: where they run and
/// are not split, they are the batch-invariant ones; else the generic one alone is.
std::vector<Tactic> contraction_tactics(const Contraction& c, const Problem& p);
Emitted emit_contraction(const Contraction& c, const Arch& arch, const Tactic& t);

// --- parts of the cost model
struct TileWork {
    int64_t blocks = 1;    // in the grid
    int resident = 1;      // blocks that an SM holds at once
    double steps = 1;      // of the depth, per block
    double step_flops = 0; // of one step
    double step_us = 0.1;  // least time of one step, whatever its size
    double efficiency = 1; // of the tensor cores
    double block_us = 1;   // start and end of a block
    double l2_bytes = 0;   // loads, all blocks
    double dram_bytes = 0; // each byte once
};
double tile_cost_us(const TileWork& w, const Arch& arch);
/// Bytes of operands and result, each once.
double traffic_bytes(const Contraction& c);
/// Of the epilogue's operands.
double operand_bytes(const Finish& f);

inline int64_t div_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

} // namespace ingot::kernels
