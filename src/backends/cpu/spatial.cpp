// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/spatial.h"

namespace ingot::cpu {

std::vector<SpatialAxis> spatial_axes(std::string_view op, const Shape& x, const Shape& out,
                                      std::span<const int64_t> sizes,
                                      std::span<const int64_t> strides,
                                      std::span<const int64_t> dilations, const Shape& low,
                                      const Shape& high) {
    std::vector<SpatialAxis> axes;
    for (size_t i = 0; i < sizes.size(); ++i) {
        SpatialAxis a{x[i + 2], out[i + 2], sizes[i], strides[i], dilations[i], low[i], high[i]};
        require(a.low >= 0 && a.high >= 0, ErrorCode::InvalidArgument, op, " of ", x,
                " along axis ", i + 2, ": the pads ", a.low, " and ", a.high, " are negative");
        int64_t span =
            a.dilation * (a.size - 1) + 1; // operands of 31 bits, as window's inference checked
        int64_t padded = a.in + a.low + a.high;
        int64_t positions = padded < span ? 0 : (padded - span) / a.stride + 1;
        require(positions == a.out, ErrorCode::InvalidArgument, op, " of ", x, " along axis ",
                i + 2, ": a window of ", span, " over ", padded, " elements in steps of ", a.stride,
                " has ", positions, " positions, expected ", a.out);
        axes.push_back(a);
    }
    return axes;
}

} // namespace ingot::cpu
