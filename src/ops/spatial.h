// SPDX-License-Identifier: Apache-2.0
// Padding and windows over the spatial axes of [N,C,spatial...], shared by convolution and pooling.
#pragma once

#include "base/error.h"
#include "ops/ops.h"

namespace ingot::ops {

/// x [N,C,spatial...] with `low` and `high` elements of `value` added around each spatial axis.
inline Value pad_spatial(Graph& g, Value x, const Dims& low, const Dims& high, double value) {
    Dims before(2, Dim(0));
    Dims after(2, Dim(0));
    before.insert(before.end(), low.begin(), low.end());
    after.insert(after.end(), high.begin(), high.end());
    return pad(g, x, before, after, value);
}

/// Every `stride`-th element of an axis.
inline Value every(Graph& g, Value x, int64_t axis, int64_t stride) {
    const Dim size = dims(g, x)[static_cast<size_t>(axis)];
    return slice(g, x, axis, 0, floor_div(size - Dim(1), stride) + Dim(1), stride);
}

/// Common rule of stride, dilation and pad lists: one entry for each spatial axis.
inline void require_spatial(std::string_view op, const Type& x, std::string_view what,
                            size_t entries) {
    require(entries + 2 == x.dims.size(), ErrorCode::InvalidModel, op, " of ", x, ": got ", entries,
            " ", what, ", expected one for each of ", x.rank() - 2, " spatial axes");
}

} // namespace ingot::ops
