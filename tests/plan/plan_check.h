// SPDX-License-Identifier: Apache-2.0
// A plan, executed on paper: every byte knows which buffer wrote it last.
#pragma once

#include "plan/segment_plan.h"

#include <span>
#include <string>

namespace ingot::test {

/// "" where every step reads only bytes that were written for the buffer it names (by a step before
/// it, or, of inputs and constants, before the run), no step writes over what it reads as another
/// buffer, all accesses lie within their buffers and lifetimes, and all outputs are written whole;
/// else what is wrong. Sizes should be small: it looks at each byte.
std::string plan_fault(const plan::Program& program,
                       std::span<const plan::SegmentPlan* const> segments);

} // namespace ingot::test
