// SPDX-License-Identifier: Apache-2.0
// A plan as text, for people and for goldens in tests: steps with kernels and tactics, buffers with
// offsets and lifetimes, and the layouts of operands.
#pragma once

#include "plan/segment_plan.h"

#include <span>
#include <string>

namespace ingot::plan {

/// "f32[1,64,56,56]", with strides unless row major.
std::string describe(const Operand& o);

/// The segments that are planned so far, in order; the nodes of the others with their kernels.
///
///   2 segments
///   input b0 'x' f32[4,8]
///   output b1 'y' f32[4,8]
///   segment 0: 1 step, 256 bytes of activations
///     step 0: dot 'product' (mma.64x64)
///       reads b0 f32[4,8], b2 f32[8,8]
///       writes b3 f32[4,8] strides [1,4] + 16
///       scratch b4
///     b2: constant f32[8,8], 256 bytes
///     b3: 128 bytes at 0, steps 0 to 2
///     b4: 128 bytes at 128, step 0
///
/// `b3 ... + 16` begins 16 elements behind the start of the buffer. A buffer that later segments
/// read lives to the end.
std::string plan_text(const Program& program, std::span<const SegmentPlan* const> planned);

} // namespace ingot::plan
