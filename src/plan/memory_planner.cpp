// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_planner.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ingot::plan {

namespace {

int64_t align_up(int64_t bytes, int64_t alignment) {
    require(bytes >= 0 && bytes <= most_tensor_bytes, ErrorCode::OutOfMemory, "a value of ", bytes,
            " bytes does not fit into memory");
    return round_up(bytes, alignment);
}

/// The offset where `size` bytes fit between the placed blocks with overlapping lifetimes: the
/// tightest gap, the lowest among equals.
int64_t best_offset(std::vector<std::pair<int64_t, int64_t>>& taken, int64_t size) {
    std::sort(taken.begin(), taken.end());
    int64_t best = -1;
    int64_t best_gap = most_tensor_bytes + 1;
    int64_t end = 0;
    for (const auto& [from, to] : taken) {
        int64_t gap = from - end;
        if (gap >= size && gap < best_gap) {
            best = end;
            best_gap = gap;
        }
        end = std::max(end, to);
    }
    return best >= 0 ? best : end;
}

} // namespace

ArenaPlan plan_arena(std::span<const Block> blocks, int64_t alignment) {
    std::vector<size_t> by_size(blocks.size());
    std::iota(by_size.begin(), by_size.end(), size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(), [&blocks](size_t a, size_t b) {
        return blocks[a].bytes != blocks[b].bytes ? blocks[a].bytes > blocks[b].bytes
                                                  : blocks[a].first < blocks[b].first;
    });
    ArenaPlan plan;
    plan.offsets.assign(blocks.size(), 0);
    std::vector<size_t> placed;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t i : by_size) {
        const Block& b = blocks[i];
        int64_t size = align_up(b.bytes, alignment);
        if (size == 0) {
            continue;
        }
        taken.clear();
        for (size_t j : placed) {
            if (blocks[j].first <= b.last && b.first <= blocks[j].last) {
                taken.emplace_back(plan.offsets[j],
                                   plan.offsets[j] + align_up(blocks[j].bytes, alignment));
            }
        }
        int64_t offset = best_offset(taken, size);
        require(offset <= most_tensor_bytes - size, ErrorCode::OutOfMemory,
                "activations need more than ", most_tensor_bytes, " bytes");
        plan.offsets[i] = offset;
        plan.bytes = std::max(plan.bytes, offset + size);
        placed.push_back(i);
    }
    return plan;
}

int64_t arena_lower_bound(std::span<const Block> blocks, int64_t alignment) {
    std::map<int64_t, int64_t> change;
    for (const Block& b : blocks) {
        int64_t size = align_up(b.bytes, alignment);
        change[b.first] += size;
        change[b.last + 1] -= size;
    }
    int64_t live = 0;
    int64_t most = 0;
    for (const auto& [step, delta] : change) {
        live += delta;
        most = std::max(most, live);
    }
    return most;
}

} // namespace ingot::plan
