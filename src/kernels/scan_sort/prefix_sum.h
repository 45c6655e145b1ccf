// SPDX-License-Identifier: Apache-2.0
// Prefix sums of counts, for steps with data-dependent sizes.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// Scratch memory at the offset holds a u64 for the total and `count` u64 counts; replaces each
/// count by the sum of the earlier ones and stores the total.
Launch prefix_sum_launch(int64_t scratch, int64_t count);

/// `o`, or, where it is packed, wide elements in scratch memory at `end`, which advances.
Operand unpacked_operand(const Operand& o, int64_t& end);
/// The launches that fill these elements.
void widen_packed(const Operand& from, const Operand& to, Emitted& out);

} // namespace ingot::kernels
