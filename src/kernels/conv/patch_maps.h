// SPDX-License-Identifier: Apache-2.0
// Maps by which TMA fetches a convolution's operands and stores patches of its results.
#pragma once

#include "kernels/conv/conv_shape.h"

#include <optional>

namespace ingot::kernels {

using Sizes = std::array<int64_t, 3>; // width, height, images

/// A stride in bytes that TMA accepts, also for an axis of size 1 without one.
uint64_t bytes_of_stride(DType type, int64_t stride, int64_t size, int64_t otherwise);
/// Width, height and images of the result; in a volume, positions along the first axis take the
/// place of images.
Sizes result_sizes(const ConvShape& s);
/// A slab of channels of width x height pixels of an image or a plane, by windows without steps.
TensorMap halo_map(const ConvShape& s, int64_t width, int64_t height);
/// 64 results of width x height positions of stored view v of `o`, for storing and for the
/// epilogue.
TensorMap panel_map(const Contraction& c, const Operand& o, size_t v, const Sizes& out,
                    int64_t width, int64_t height);
/// A slab of channels at a kernel position, of `bn` results.
TensorMap weight_map(const ConvShape& s, int bn);
/// Strides of stored view v along width, height and images of `out`; nullopt where these are no
/// axes of it.
std::optional<Sizes> strides_along(const Contraction& c, size_t v, const Sizes& out);
/// Whether TMA can store patches of results, and load the full operand.
bool can_store_by_tma(const Contraction& c, const Sizes& out);
/// Bytes of operands and results, each once.
double bytes_moved(const ConvShape& s);

} // namespace ingot::kernels
