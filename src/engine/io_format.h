// SPDX-License-Identifier: Apache-2.0
// IoFormat: the memory format of an engine's input or output. The formats are TensorRT's: row
// major, channels last, and vectorised channels.
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
    std::string_view name;        // trtexec's spelling: "chw32"
    std::string_view api_name;    // "kCHW32"
    int channel_axis = 0;         // the channel axis counted from the end; 0: no channel axis
    int64_t vector = 1;           // channels are padded to a multiple of it
    bool last = false;            // channels are innermost; else vectors of channels
    bool dla = false;             // an accelerator that Ingot does not support
    std::span<const DType> types; // empty: all

    bool is_row_major() const { return channel_axis == 0 && !dla; }
    /// Whether memory may contain padding elements.
    bool pads() const { return vector > 1; }
    /// The index of the channel axis in a tensor of this rank.
    size_t axis(size_t rank) const { return rank - static_cast<size_t>(channel_axis); }
};

/// All formats; the first is row_major(). If a caller accepts several, the earliest is chosen.
std::span<const IoFormat> io_formats();
const IoFormat& row_major();
/// Null when no format has that name.
const IoFormat* find_io_format(std::string_view name);
/// Why tensors of this type cannot be stored in this format; "" when they can.
std::string refusal(const IoFormat& f, const Type& t);

/// The shape of the row-major array behind a tensor: f16[2,5,4,3] in chw4 is [2,2,4,3,4], in hwc8
/// [2,4,3,8].
Dims storage_dims(const IoFormat& f, const Dims& dims);
Shape storage_shape(const IoFormat& f, const Shape& shape);
/// The inverse, for a tensor with `channels` channels.
Shape tensor_shape(const IoFormat& f, const Shape& storage, int64_t channels);
/// The stride of each axis of the tensor, in elements or, for vectorised channels, in whole
/// vectors; -1 when it depends on a size that is -1.
Shape format_strides(const IoFormat& f, const Shape& shape);

/// The array that stores `t`; elements beyond its channels are zeros.
Tensor to_storage(const IoFormat& f, const Tensor& t);
/// The tensor of that shape stored in the array.
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
/// Errors: InvalidArgument naming tensor, type and format when one does not fit, or when the number
/// of channels depends on data (it must be known before the run).
void check_formats(const Graph& g, const IoFormats& formats);
/// {"inputs": {"x": "chw32"}, "outputs": {}}; row major is omitted.
Json formats_json(const Graph& g, const IoFormats& formats);
/// Errors: InvalidArgument.
IoFormats formats_from_json(const Graph& g, const Json& j);

} // namespace ingot
