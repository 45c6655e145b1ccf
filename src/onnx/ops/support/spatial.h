// SPDX-License-Identifier: Apache-2.0
// Strides, dilations, pads and auto_pad of operators that slide a kernel over spatial axes.
#pragma once

#include "onnx/importer.h"

#include <string>
#include <vector>

namespace ingot::onnx {

struct Sliding {
    std::vector<int64_t> kernel;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    std::string auto_pad;

    size_t count() const { return kernel.size(); }
    /// Extent of one window along axis i, from its first to its last element.
    int64_t span(size_t i) const { return dilations[i] * (kernel[i] - 1) + 1; }
};

/// Upper bound of count attributes; the product of two does not overflow.
inline constexpr int64_t largest_count = INT32_MAX;
/// An attribute in [1, largest_count].
int64_t positive(const NodeContext& c, std::string_view name);
int64_t positive(const NodeContext& c, std::string_view name, int64_t fallback);

/// Reads the attributes of a node whose input has `spatial` sizes. `kernel` comes from the weights;
/// when empty, it is read from attribute kernel_shape.
Sliding sliding(const NodeContext& c, const Dims& spatial, std::vector<int64_t> kernel = {});
/// Sizes after the two leading ones.
Dims spatial_dims(const Type& t);
/// The kernel sizes of weights [O,C,kernel...]. Refuses unknown sizes.
std::vector<int64_t> kernel_sizes(const NodeContext& c, int weights);
/// v of rank 1 as [1,C,1,...] with `spatial` trailing axes, to add to [N,C,spatial...].
Value per_channel(ingot::Graph& g, Value v, size_t spatial);
/// x [N,spatial...,C] as [N,C,spatial...].
Value channels_first(ingot::Graph& g, Value x);
/// x [N,C,spatial...] as [N,spatial...,C].
Value channels_last(ingot::Graph& g, Value x);
/// The convolution described by a node's attributes.
ops::Conv conv_attributes(const NodeContext& c, const Sliding& s, DType result);

} // namespace ingot::onnx
