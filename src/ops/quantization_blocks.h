// SPDX-License-Identifier: Apache-2.0
// Aligns scales and zero points of quantisation with the elements they belong to.
#pragma once

#include "base/error.h"
#include "ops/ops.h"

namespace ingot::ops {

/// p in a form that broadcasts against x: a scalar, one element per position of `axis`, or (block >
/// 0) one per block along it, repeated.
inline Value spread_parameter(Graph& g, std::string_view op, const Type& x, int64_t axis,
                              int64_t block, Value p) {
    const Dims d = dims(g, p);
    if (block > 0) {
        axis = normalize_axis(axis, x.rank());
        auto at = static_cast<size_t>(axis);
        require(d.size() == x.dims.size(), ErrorCode::InvalidModel, op, " of ", x,
                " by blocks: got ", g.type(p), ", expected the same rank");
        Value v = unsqueeze(g, p, {axis + 1});
        Dims repeated = dims(g, v);
        repeated[at + 1] = block;
        Dims flat = d;
        flat[at] = d[at] * Dim(block);
        v = reshape(g, broadcast_to(g, v, repeated), flat);
        require(!flat[at].is_const() || !x.dims[at].is_const() ||
                    (flat[at].value() >= x.dims[at].value() &&
                     flat[at].value() - x.dims[at].value() < block),
                ErrorCode::InvalidModel, op, " of ", x, " by blocks of ", block, " along axis ",
                axis, ": got ", g.type(p), ", which is not one for each block");
        return slice(g, v, axis, 0, x.dims[at]);
    }
    if (d.empty() || (d.size() == 1 && d[0].is_const(1))) {
        return reshape(g, p, {});
    }
    require(d.size() == 1, ErrorCode::InvalidModel, op, " of ", x, ": got ", g.type(p),
            ", expected a scalar or one element for each position of axis ", axis);
    axis = normalize_axis(axis, x.rank());
    Dims shape(x.dims.size() - static_cast<size_t>(axis), Dim(1));
    shape[0] = d[0];
    return reshape(g, p, shape);
}

} // namespace ingot::ops
