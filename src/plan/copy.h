// SPDX-License-Identifier: Apache-2.0
// Strided copies, the common form of views, layouts and movement ops.
#pragma once

#include "plan/program.h"

namespace ingot::plan {

/// A host step that copies the elements of `from` to the same positions of `to`; equal shapes and
/// dtypes, any strides.
std::unique_ptr<Step> make_copy(const Operand& from, const Operand& to, Device& device);
/// Copies at once, with the bases of both buffers given.
void copy_elements(const Operand& from, const std::byte* from_base, const Operand& to,
                   std::byte* to_base, ThreadPool& pool);
/// A constant stored densely in another order; made once per executable. The tensor's shape is that
/// of the memory (outermost axis first).
Tensor packed_constant(PackCache& packs, const Operand& constant, const std::byte* base,
                       const Order& order);

} // namespace ingot::plan
