// SPDX-License-Identifier: Apache-2.0
// The analytic cost model of tiled contractions.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

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
/// The instructions of a product of bytes behind its sums, where they hide no loads: those of
/// others are part of what was measured.
double epilogue_of_bytes_us(const Contraction& c, const Arch& arch);
/// Bytes of operands and result, each once.
double traffic_bytes(const Contraction& c);
/// Bytes of the epilogue's operands.
double operand_bytes(const Epilogue& e);

} // namespace ingot::kernels
