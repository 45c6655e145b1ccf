// SPDX-License-Identifier: Apache-2.0
// Sorting as device launches, for the sort and topk ops and for what needs an order (nms).
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// How elements of a dtype become unsigned keys.
struct KeyType {
    std::string_view type; // "u32" or "u64"
    int bits = 32;
    int64_t bytes() const { return bits > 32 ? 8 : 4; }
    std::string mask() const;
};
KeyType key_type(DType t);

/// Two buffers of keys and indices for `rows` rows of n elements, and the counts between them, as
/// offsets into scratch memory.
struct RadixBuffers {
    int64_t keys[2] = {0, 0};
    int64_t from[2] = {0, 0};
    int64_t places = 0;
    int64_t totals = 0;
    int64_t end = 0;
};
/// Buffers from `begin` on.
RadixBuffers radix_buffers(const KeyType& k, int64_t rows, int64_t n, int64_t begin);
/// Sorts rows whose keys and indices are in keys[0] and from[0]; returns which buffer has them
/// then. Stable.
int add_radix_passes(Emitted& e, const KeyType& k, const RadixBuffers& b, int64_t rows, int64_t n);

std::vector<Tactic> sort_tactics(const Problem& p);
Emitted emit_sort(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
