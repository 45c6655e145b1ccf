// SPDX-License-Identifier: Apache-2.0
// Per-channel factors and shifts after Conv, ConvTranspose and Gemm, to be folded into their
// constants.
#pragma once

#include "slim/rules.h"

namespace ingot::slim {

/// y * factor + shift, one of each per channel.
struct Affine {
    std::vector<double> factor;
    std::vector<double> shift;
};

/// The elements of a constant with `channels` elements along axis 1 of `rank`, or with a single
/// element: one value per channel.
std::optional<std::vector<double>> per_channel(const Context& c, const std::string& name,
                                               int64_t channels, int64_t rank);

/// The affine form of a node in its operand `name`: batch normalisation, or a sum, difference,
/// product or quotient with a constant.
std::optional<Affine> affine_of(const Context& c, const onnx::Node& n, const std::string& name,
                                int64_t channels, int64_t rank);

/// t with the elements of channel k multiplied by factor[k]; `axis` is the channel axis. With
/// `groups` above 1, the channels of group g are those of part g of axis 0 (ConvTranspose). Nullopt
/// when a product does not fit the type.
std::optional<Tensor> scaled_by(const Tensor& t, const std::vector<double>& factor, int64_t axis,
                                int64_t groups);
/// The values as a constant of that type, or nullopt when one does not fit.
std::optional<Tensor> as_tensor(DType dtype, const std::vector<double>& values);

} // namespace ingot::slim
