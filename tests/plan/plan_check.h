// SPDX-License-Identifier: Apache-2.0
// Executes a plan symbolically: every byte records the buffer that wrote it last. It finds more
// than plan/placement_check.h, which it calls first, and takes far longer.
#pragma once

#include "plan/segment_plan.h"

#include <span>
#include <string>

namespace ingot::test {

/// "" where every step reads only bytes written for the buffer that it names (by an earlier step,
/// or, for inputs and constants, before the run), no step overwrites bytes that it reads as another
/// buffer, all accesses are within their buffers and lifetimes, and all outputs are written whole;
/// else the fault. Sizes should be small: it visits each byte.
std::string plan_fault(const plan::Program& program,
                       std::span<const plan::SegmentPlan* const> segments);

} // namespace ingot::test
