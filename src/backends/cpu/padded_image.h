// SPDX-License-Identifier: Apache-2.0
// One image with zeros around it, as products over windows read it.
#pragma once

#include "backends/cpu/spatial.h"

namespace ingot::cpu {

/// The number of elements of a shape.
int64_t product(const Shape& s);

/// One zero-padded image, channels last: sizes and strides (in elements) of the spatial axes.
struct PaddedImage {
    Shape sizes;
    Shape strides;
    int64_t channels = 0;
    bool pads = false;

    /// Reads `in`, `low` and `high` of the axes; the pads are not negative.
    PaddedImage(const std::vector<SpatialAxis>& axes, int64_t image_channels);
    int64_t elements() const { return product(sizes) * channels; }
};

/// Copies one image of elements of `width` bytes into its padded form.
void pad_image(const std::vector<SpatialAxis>& axes, const PaddedImage& image,
               const std::byte* from, std::byte* to, int64_t width, ThreadPool& pool);

/// i * stride for i < n.
std::vector<int64_t> multiples(int64_t n, int64_t stride);
/// a[i] + b[j] for all i and j; j runs fastest.
std::vector<int64_t> sums(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

} // namespace ingot::cpu
