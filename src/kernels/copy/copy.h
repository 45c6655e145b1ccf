// SPDX-License-Identifier: Apache-2.0
// Copies between strided operands.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// The launches that copy every element of `from` to the same position of `to`; equal shapes and
/// dtypes, any strides.
Emitted emit_copy(const Operand& from, const Operand& to, const Arch& arch);

} // namespace ingot::kernels
