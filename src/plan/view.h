// SPDX-License-Identifier: Apache-2.0
// Views: shapes, strides and offsets over a stored array, and the effect of view ops on them.
#pragma once

#include "ir/tensor.h"

#include <optional>
#include <span>
#include <vector>

namespace ingot::plan {

/// Axes from the outermost to the innermost in memory.
using Order = std::vector<int>;

/// Element (i0, i1, ...) is at offset + sum of i * stride, in elements. Axes of size 1 may have any
/// stride.
struct View {
    Shape shape;
    Shape strides;
    int64_t offset = 0;

    int rank() const { return static_cast<int>(shape.size()); }
    int64_t count() const;
    bool operator==(const View&) const = default;
};

Order row_major(int rank);
/// N, spatial..., C for values of rank 3 and more (axis 1 innermost); row major below.
Order channels_last(int rank);
/// A dense view with its axes in memory in this order.
View dense(const Shape& shape, const Order& order);
View dense(const Shape& shape);
/// Whether the view is dense in that order (axes of size 1 and empty views do not matter).
bool is_dense(const View& v, const Order& order);
bool is_dense(const View& v);
/// The order of a dense view, row major where ambiguous; nullopt for others.
std::optional<Order> dense_order(const View& v);
/// Whether the axes are ordered in memory as `order`, gaps allowed, with the innermost elements
/// adjacent.
bool follows(const View& v, const Order& order);
/// Some order that the view follows: its dense one where it is dense.
std::optional<Order> memory_order(const View& v);
/// Axes sorted by stride, the largest first; row major among equals.
Order stride_order(const View& v);
/// The order of the elements behind the view, with each broadcast axis right of its left neighbour:
/// repeated elements are adjacent.
Order repeat_order(const View& v);

/// The same elements in row-major sequence under another shape; nullopt when no strides express it.
std::optional<View> reshaped(const View& v, const Shape& shape);
/// The order in which to copy the view so that the copy can be reshaped without another one: the
/// view's own if possible, or that of the first of the axes that become one, where elements that
/// lie near each other stay so (pixels that come out of channels lie where pixels do); else row
/// major, which always works.
Order order_to_reshape(const View& view, const Shape& to);
View permuted(const View& v, std::span<const int64_t> perm);
View broadcasted(const View& v, const Shape& shape);
View sliced(const View& v, const Shape& starts, const Shape& sizes, std::span<const int64_t> steps);
View windowed(const View& v, std::span<const int64_t> axes, std::span<const int64_t> sizes,
              std::span<const int64_t> strides, std::span<const int64_t> dilations);

/// Merged loops over views of one shape: axes of size 1 are dropped, neighbours contiguous in every
/// view are joined. strides[k] belongs to views[k]; the innermost axis is last.
struct LoopNest {
    Shape sizes;
    std::vector<Shape> strides;
};
/// Orders the axes by `order`, then merges them.
LoopNest merged_loops(std::span<const View> views, const Order& order);
/// Offsets of all elements of the given axes (with the given strides), row-major.
std::vector<int64_t> offsets_of(const Shape& sizes, const Shape& strides);

} // namespace ingot::plan
