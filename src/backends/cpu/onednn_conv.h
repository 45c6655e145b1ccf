// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling through oneDNN, channels last.
#pragma once

#include "backends/cpu/conv_step.h"

namespace ingot::cpu {

/// The whole group when oneDNN can apply the epilogue, else the convolution followed by the map;
/// null when oneDNN has no loops for it.
std::unique_ptr<Step> make_library_conv(const ConvProblem& problem, const StepArgs& args);

/// The same for a transposed convolution, with a problem as make_conv_transpose() takes it.
std::unique_ptr<Step> make_library_conv_transpose(const ConvProblem& problem, const StepArgs& args);

enum class PoolKind { Max, Average, AverageWithPadding };
std::unique_ptr<Step> make_library_pool(PoolKind kind, const std::vector<SpatialAxis>& axes,
                                        const StepArgs& args);

} // namespace ingot::cpu
