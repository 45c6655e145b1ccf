// SPDX-License-Identifier: Apache-2.0
// Shared by importer functions: integer lists and axes known during import or only at run time,
// element types from attributes, and row-major indices as tensors.
#pragma once

#include "onnx/importer.h"

#include <optional>
#include <string_view>
#include <vector>

namespace ingot::onnx {

/// The element type named by an attribute (TensorProto.DataType). Refuses unsupported types.
DType dtype_attribute(const NodeContext& c, std::string_view name, DType fallback);

/// v itself, or converted to i64.
Value to_i64(ingot::Graph& g, Value v);
/// A tensor of one element as a scalar.
Value to_scalar(ingot::Graph& g, Value v);
/// A size (any known dtype) as a scalar tensor of dtype t.
Value size_scalar(ingot::Graph& g, const Dim& d, DType t);
/// Element i of a list as a scalar.
Value element(ingot::Graph& g, Value list, int64_t i);

/// Number of elements of input i, of rank 0 or 1. Refuses a number known only at run time: the rank
/// of a result depends on it.
int64_t list_length(const NodeContext& c, int i);
/// Input i as an i64 list of `count` elements; the run checks the count if import cannot.
Value list_input(const NodeContext& c, int i, int64_t count);
/// The same as sizes; unknown ones are bound at run time. Refuses negative ones.
Dims sizes_input(const NodeContext& c, int i, int64_t count);
/// Integers of input i, when known during import.
std::optional<std::vector<int64_t>> known_ints(const NodeContext& c, int i);
/// Input i, a single number, as a size.
Dim size_input(const NodeContext& c, int i);

/// Axes from an attribute or an input.
struct Axes {
    bool given = false;
    std::optional<std::vector<int64_t>> known; // as written: negative ones count from the back
    Value value;                               // i64 [count], where not known
    int64_t count = 0;
};
Axes read_axes(const NodeContext& c, std::string_view attribute, int input);
/// bool [rank]: the axes that a list names (negative ones count from the back).
Value axis_flags(ingot::Graph& g, Value axes, int64_t rank);
/// i64 [count]: the positions of false in `flags`.
Value unflagged(ingot::Graph& g, Value flags, int64_t count);

/// Sizes around an axis known only at run time: [before, size, after] as fresh symbols.
struct AroundAxis {
    Dim before;
    Dim size;
    Dim after;
};
AroundAxis around_axis(ingot::Graph& g, const Dims& dims, Value axis);
/// The product of dims in [from, to).
Dim product_of(const Dims& dims, size_t from, size_t to);

/// i64 of the coordinates' broadcast shape: the row-major index into dims; when a coordinate is out
/// of range, an index outside dims, never that of another element. Coordinates are integers.
Value row_major_index(ingot::Graph& g, std::span<const Value> coordinates, const Dims& dims);
/// i64 of `dims`: the coordinate along `axis`, with size 1 along all other axes.
Value coordinate(ingot::Graph& g, const Dims& dims, size_t axis);
/// i64 [count]: coordinates of the true elements of a bool list; count is a fresh symbol.
Value true_positions(ingot::Graph& g, Value flags);

/// For dropouts: refuses a training_mode that is set, unless the ratio is known to be 0. Both
/// inputs may be left out.
void require_inference(const NodeContext& c, int ratio, int training_mode);

} // namespace ingot::onnx
