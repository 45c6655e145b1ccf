// SPDX-License-Identifier: Apache-2.0
// IoFormat: in which order the elements of an engine's input or output lie in memory. The formats
// are TensorRT's: row major, channels last, and channels in vectors.
#pragma once

#include "base/json.h"
#include "ir/graph.h"
#include "ir/tensor.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// One of io_formats(); compared by address.
struct IoFormat {
    std::string_view name;        // as trtexec spells it: "chw32"
    std::string_view api_name;    // "kCHW32"
    int place = 0;                // of the channels, from the end; 0: the format has none
    int64_t vector = 1;           // channels are padded to a multiple of it
    bool last = false;            // channels are innermost; else vectors of them are
    bool dla = false;             // of an accelerator that Ingot does not run on
    std::span<const DType> types; // empty: all

    bool is_row_major() const { return place == 0 && !dla; }
    /// Whether there may be elements that are no part of the tensor.
    bool pads() const { return vector > 1; }
    /// The channels among the axes of a tensor of this rank.
    size_t axis(size_t rank) const { return rank - static_cast<size_t>(place); }
};

/// All of them; the first is row_major(). Of several that a caller takes, the earliest is chosen.
std::span<const IoFormat> io_formats();
const IoFormat& row_major();
/// Null when there is none of that name.
const IoFormat* find_io_format(std::string_view name);
/// Why tensors of this type cannot lie so; "" when they can.
std::string refusal(const IoFormat& f, const Type& t);

/// The sizes of the row-major array that a tensor's memory is: f16[2,5,4,3] in chw4 is
/// [2,2,4,3,4], in hwc8 [2,4,3,8].
Dims storage_dims(const IoFormat& f, const Dims& dims);
Shape storage_shape(const IoFormat& f, const Shape& shape);
/// The other way round, for a tensor of `channels` channels.
Shape tensor_shape(const IoFormat& f, const Shape& storage, int64_t channels);
/// For each axis of the tensor the distance of neighbours, in elements or, where channels lie in
/// vectors, in whole vectors; -1 where it depends on a size that is -1.
Shape format_strides(const IoFormat& f, const Shape& shape);

/// The array that `t` is in memory; elements beyond its channels are zeros.
Tensor to_storage(const IoFormat& f, const Tensor& t);
/// The tensor of that shape from such an array.
Tensor from_storage(const IoFormat& f, const Tensor& storage, const Shape& shape);

/// The formats of an engine's inputs and outputs by position; those beyond the lists are row major.
struct IoFormats {
    std::vector<const IoFormat*> inputs;
    std::vector<const IoFormat*> outputs;

    const IoFormat& input(size_t i) const { return i < inputs.size() ? *inputs[i] : row_major(); }
    const IoFormat& output(size_t i) const {
        return i < outputs.size() ? *outputs[i] : row_major();
    }
    /// Whether everything is row major.
    bool are_plain() const;
};
/// Errors: InvalidArgument naming tensor, type and format where one does not fit, or where the
/// number of channels, which has to be known before a run, depends on data.
void check_formats(const Graph& g, const IoFormats& formats);
/// {"inputs": {"x": "chw32"}, "outputs": {}}; row major is left out.
Json formats_json(const Graph& g, const IoFormats& formats);
/// Errors: InvalidArgument.
IoFormats formats_from_json(const Graph& g, const Json& j);

} // namespace ingot
