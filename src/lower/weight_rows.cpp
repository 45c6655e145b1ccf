// SPDX-License-Identifier: Apache-2.0
#include "lower/weight_rows.h"

#include "ops/ops.h"
#include "plan/row_alignment.h"

#include <cstring>

namespace ingot::plan {

namespace {

/// Weights [columns, depth], or [depth, columns] where `depth_first`, as [columns, pitch].
Tensor in_rows(const Tensor& w, bool depth_first, int64_t pitch) {
    int64_t columns = w.shape()[depth_first ? 1 : 0];
    int64_t depth = w.shape()[depth_first ? 0 : 1];
    Tensor rows = Tensor::zeros(w.dtype(), {columns, pitch});
    auto bytes = static_cast<size_t>(bit_width(w.dtype()) / 8);
    const std::byte* from = w.bytes().data();
    std::byte* to = rows.mutable_bytes().data();
    for (int64_t c = 0; c < columns; ++c) {
        for (int64_t k = 0; k < depth; ++k) {
            int64_t at = depth_first ? k * columns + c : c * depth + k;
            std::memcpy(to + static_cast<size_t>(c * pitch + k) * bytes,
                        from + static_cast<size_t>(at) * bytes, bytes);
        }
    }
    return rows;
}

} // namespace

Value weights_in_rows(Graph& g, const Tensor& weights, bool depth_first) {
    int64_t columns = weights.shape()[depth_first ? 1 : 0];
    int64_t depth = weights.shape()[depth_first ? 0 : 1];
    int64_t pitch = aligned_pitch(depth, weights.dtype());
    Tensor rows =
        Tensor::lazy(weights.dtype(), {columns, pitch}, [weights, depth_first, pitch](ThreadPool&) {
            return in_rows(weights, depth_first, pitch);
        });
    Value all = ops::constant(g, std::move(rows));
    return pitch == depth ? all : ops::slice(g, all, 1, 0, depth);
}

} // namespace ingot::plan
