// SPDX-License-Identifier: Apache-2.0
// Pictures as model inputs: PNG and JPEG files, resized and normalised.
#pragma once

#include "ir/tensor.h"

#include <string>

namespace ingot {

struct ImageOptions {
    std::vector<double> mean = {0, 0,
                                0}; // subtracted, in units of 0..255; one value, or one per channel
    std::vector<double> std = {1, 1, 1}; // divided by
    std::string layout; // "nchw", "nhwc", "chw", "hwc"; "" infers it from the shape
};

bool is_image_path(const std::string& path);
/// Reads a picture into a tensor of this type and shape: the shape, under the layout, gives
/// channels (1, 3 or 4) and size; the picture is resized bilinearly with antialiasing, as Pillow
/// does. Errors: Io, InvalidArgument naming path, got and expected.
Tensor read_image(const std::string& path, DType dtype, const Shape& shape,
                  const ImageOptions& options);

} // namespace ingot
