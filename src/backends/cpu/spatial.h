// SPDX-License-Identifier: Apache-2.0
// Concrete sizes of a convolution or pooling over [N,C,spatial...].
#pragma once

#include "backends/cpu/kernel.h"

namespace ingot::cpu {

struct SpatialAxis {
    int64_t in = 0;
    int64_t out = 0;
    int64_t size = 1; // of the window
    int64_t stride = 1;
    int64_t dilation = 1;
    int64_t low = 0;
    int64_t high = 0;
};

/// Checks that windows over in + low + high give `out` positions. Errors: InvalidArgument.
std::vector<SpatialAxis> spatial_axes(std::string_view op, const Shape& x, const Shape& out,
                                      std::span<const int64_t> sizes,
                                      std::span<const int64_t> strides,
                                      std::span<const int64_t> dilations, const Shape& low,
                                      const Shape& high);

} // namespace ingot::cpu
