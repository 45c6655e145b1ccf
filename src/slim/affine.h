// SPDX-License-Identifier: Apache-2.0
// Per-channel factors and shifts after Conv, ConvTranspose and Gemm, folded into their constants.
#pragma once

#include "slim/rules.h"

namespace ingot::slim {

/// y * factor + shift, one of each per channel.
struct Affine {
    std::vector<double> factor;
    std::vector<double> shift;
};

/// The elements of a constant of `channels` along axis 1 of `rank` (or of a single element), as one
/// a channel.
std::optional<std::vector<double>> per_channel(const Context& c, const std::string& name,
                                               int64_t channels, int64_t rank);

/// What a node does to its operand `name`: batch normalisation, or a sum, difference, product or
/// quotient with a constant.
std::optional<Affine> affine_of(const Context& c, const onnx::Node& n, const std::string& name,
                                int64_t channels, int64_t rank);

/// t with the elements of channel k multiplied by factor[k]; `axis` is the channels' axis. With
/// `groups` above 1 the channels of group g are those of the part g of axis 0 (ConvTranspose).
/// Nullopt where the type cannot hold a product.
std::optional<Tensor> scaled_by(const Tensor& t, const std::vector<double>& factor, int64_t axis,
                                int64_t groups);
/// The values as a constant of that type, or nullopt where it cannot hold one.
std::optional<Tensor> as_tensor(DType dtype, const std::vector<double>& values);

} // namespace ingot::slim
