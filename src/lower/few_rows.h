// SPDX-License-Identifier: Apache-2.0
// Rows that blocks of a product treat by themselves: few of them.
#pragma once

#include "ir/type.h"

namespace ingot::plan {

/// Every block of a product normalises at most this many rows itself.
inline constexpr int64_t most_normed_rows = 4;

/// Whether rows are the last axis and possibly few: one axis may have any size, such as the batch.
/// When it turns out to be large, kernels do in launches of their own what blocks do with few rows.
inline bool may_have_few_rows(const Type& t) {
    int64_t rows = 1;
    int unknown = 0;
    for (size_t i = 0; i + 1 < t.dims.size(); ++i) {
        std::optional<int64_t> size = t.dims[i].as_const();
        rows *= size.value_or(1);
        unknown += size ? 0 : 1;
    }
    return !t.dims.empty() && rows <= most_normed_rows && unknown <= 1;
}

} // namespace ingot::plan
