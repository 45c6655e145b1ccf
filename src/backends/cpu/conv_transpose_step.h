// SPDX-License-Identifier: Apache-2.0
// Transposed convolution by our own loops, channels last.
#pragma once

#include "backends/cpu/conv_step.h"

namespace ingot::cpu {

/// A product for each phase: the results whose coordinates have the same remainder by the strides
/// meet the same taps, so that no multiplication by an inserted zero remains. Phases that read the
/// same elements share a product. In `problem`, w is [C, O/groups, spatial...] and `low` and `high`
/// are cut off the result (added to it where negative).
std::unique_ptr<Step> make_conv_transpose(const ConvProblem& problem, PackCache& packs);
/// Whether make_conv_transpose_of_few() is the faster choice.
bool conv_transpose_has_few_results(const Type& x, const Type& w, int64_t groups);
/// One product of all taps with the input, then sums. For f32 in one group; x may have any strides,
/// out is row-major.
std::unique_ptr<Step> make_conv_transpose_of_few(const ConvProblem& problem, PackCache& packs);

} // namespace ingot::cpu
