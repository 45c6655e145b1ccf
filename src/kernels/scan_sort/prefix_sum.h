// SPDX-License-Identifier: Apache-2.0
// Counts into places: shared by the steps of data-dependent size.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// At the scratch offset lie a u64 for the total and `count` u64 counts; turns each count into the
/// sum of those before it and stores the total.
Launch places_launch(int64_t scratch, int64_t count);

/// `o`, or, where it is packed, wide elements in scratch memory from `end` on, which moves behind.
Operand unpacked_operand(const Operand& o, int64_t& end);
/// The launches that fill such elements.
void widen_packed(const Operand& from, const Operand& to, Emitted& out);

} // namespace ingot::kernels
