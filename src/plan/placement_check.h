// SPDX-License-Identifier: Apache-2.0
// Checks where a plan puts values: a fault here gives wrong results without any other sign.
#pragma once

#include "plan/segment_plan.h"

#include <string>

namespace ingot::plan {

/// "" where all that a step uses, its scratch memory included, lies within buffers that live at
/// that step, every buffer that it reads has been written, and buffers that live at one step share
/// no bytes; else a fault, with segment, step, node, buffers, their bytes and lifetimes. Looks at
/// buffers of this segment; takes far less time than planning.
std::string placement_fault(const SegmentPlan& plan);

/// Where the program's options or INGOT_VERIFY_PASSES ask for checks. Errors: Internal with the
/// fault.
void verify_placement(const Program& program, const SegmentPlan& plan);

} // namespace ingot::plan
