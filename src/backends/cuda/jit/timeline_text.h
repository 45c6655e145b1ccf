// SPDX-License-Identifier: Apache-2.0
// Kernels that record when each of their blocks passes its marks (common/timeline.cuh).
#pragma once

#include "kernels/family.h"

#include <string>

namespace ingot::cuda {

/// The words of one block's record.
struct BlockRecord {
    enum Word { Sm, Nanoseconds, Start, Arrive, Ready, Main, End };
    static constexpr size_t words = 7;
};

/// The text of a launch whose last argument is the address of its records, a parameter beyond those
/// of its program.
std::string timeline_text(const kernels::Launch& l);

} // namespace ingot::cuda
