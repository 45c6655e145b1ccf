// SPDX-License-Identifier: Apache-2.0
// Convolution by our own loops, channels last.
#pragma once

#include "backends/cpu/matmul.h"
#include "backends/cpu/spatial.h"

namespace ingot::cpu {

/// A convolution as the conv kernel sees it. x and out are dense with channels last.
struct ConvProblem {
    Operand x;
    Operand w;
    Operand out;
    const std::byte* w_constant = nullptr;
    int64_t batch = 0;
    int64_t channels = 0;
    int64_t results = 0; // output channels
    int64_t groups = 1;
    std::vector<SpatialAxis> axes;
};

/// A product of positions and kernels over a padded copy of each image; depthwise convolutions use
/// rows of multiplications and additions.
std::unique_ptr<Step> make_conv(const ConvProblem& problem, PackCache& packs);

} // namespace ingot::cpu
