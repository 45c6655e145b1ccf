// SPDX-License-Identifier: Apache-2.0
// Parts of scalar expressions that one vector loop computes: a quantisation, centred sums.
#pragma once

#include "backends/cpu/simd/simd.h"

#include <map>
#include <vector>

namespace ingot::cpu {

struct FusedLoop {
    MapLoop loop = nullptr;
    std::vector<int> reads; // instructions: its operands, at most 3
};

struct FusedLoops {
    std::map<size_t, FusedLoop> loops; // by their last instruction
    std::vector<bool> within;          // for each instruction: only a fused loop computes it
};
FusedLoops fused_loops(const Expr& e);

} // namespace ingot::cpu
