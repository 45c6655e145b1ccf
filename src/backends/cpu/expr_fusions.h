// SPDX-License-Identifier: Apache-2.0
// Parts of scalar expressions that one vector loop computes: a quantisation, centred sums, a table
// of one byte.
#pragma once

#include "backends/cpu/simd/simd.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace ingot::cpu {

struct FusedLoop {
    MapLoop loop = nullptr;
    std::vector<int> reads;                               // instructions: its operands, at most 3
    std::optional<std::array<std::byte, 256>> table = {}; // the operand behind them
};

struct FusedLoops {
    std::map<size_t, FusedLoop> loops; // by their last instruction
    std::vector<bool> within;          // for each instruction: nothing but fused loops reads it

    /// The instructions that instruction `n` reads, or its loop.
    std::vector<int> reads(const Expr& e, size_t n) const;
};
FusedLoops fused_loops(const Expr& e);

} // namespace ingot::cpu
