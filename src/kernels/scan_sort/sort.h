// SPDX-License-Identifier: Apache-2.0
// Sorting as device launches, for the ops sort and topk, and for nms.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// The unsigned key of a dtype's elements.
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
/// Sorts rows with keys and indices in keys[0] and from[0]; returns the number of the final buffer.
/// Stable.
int add_radix_passes(Emitted& e, const KeyType& k, const RadixBuffers& b, int64_t rows, int64_t n);

std::vector<Tactic> sort_tactics(const Problem& p);
Emitted emit_sort(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
