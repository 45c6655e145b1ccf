// SPDX-License-Identifier: Apache-2.0
// Strided copies: what views, layouts and movement ops come down to.
#pragma once

#include "plan/program.h"

namespace ingot::plan {

/// A step that copies, on the host, the elements of `from` to the same positions of `to`; shapes
/// and dtypes are equal, strides need not be.
std::unique_ptr<Step> make_copy(const Operand& from, const Operand& to, Device& device);
/// Copies at once, with the bases of both buffers given.
void copy_elements(const Operand& from, const std::byte* from_base, const Operand& to,
                   std::byte* to_base, ThreadPool& pool);
/// A constant laid out densely in another order; made once per executable. The tensor's shape is
/// that of the memory (outermost axis first).
Tensor packed_constant(PackCache& packs, const Operand& constant, const std::byte* base,
                       const Order& order);

} // namespace ingot::plan
