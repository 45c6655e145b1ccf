// SPDX-License-Identifier: Apache-2.0
// Memory planning: offsets in one arena for blocks that live over intervals of steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::plan {

/// Needs `bytes` from step `first` to step `last`, inclusive.
struct Block {
    int64_t bytes = 0;
    int64_t first = 0;
    int64_t last = 0;
};

struct ArenaPlan {
    std::vector<int64_t> offsets; // one per block, multiples of the alignment
    int64_t bytes = 0;            // of the whole arena
};

/// Blocks whose intervals intersect never share bytes. Deterministic. Errors: OutOfMemory when the
/// arena would pass 2^48 bytes.
ArenaPlan plan_arena(std::span<const Block> blocks, int64_t alignment = 64);

/// The most bytes (blocks rounded up to the alignment) alive at one step: a lower bound for any
/// plan.
int64_t arena_lower_bound(std::span<const Block> blocks, int64_t alignment = 64);

} // namespace ingot::plan
