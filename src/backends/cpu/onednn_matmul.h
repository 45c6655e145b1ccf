// SPDX-License-Identifier: Apache-2.0
// Matrix products through oneDNN.
#pragma once

#include "backends/cpu/dot_shape.h"

namespace ingot::cpu {

struct DotOperands {
    Operand a, b, c;
    const std::byte* b_constant = nullptr; // the base of b's buffer, when b is constant
};

/// The whole group when oneDNN can apply the epilogue, else the product followed by the map; null
/// when oneDNN has no loops for it.
std::unique_ptr<Step> make_library_matmul(const DotShape& shape, const DotOperands& operands,
                                          const StepArgs& args);

} // namespace ingot::cpu
