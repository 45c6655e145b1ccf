// SPDX-License-Identifier: Apache-2.0
// Pictures as model inputs: PNG and JPEG files, resized and normalised.
#pragma once

#include "ir/tensor.h"

#include <string>

namespace ingot {

struct ImageOptions {
    std::vector<double> mean = {0, 0,
                                0}; // subtracted, in units of 0..255; one value or one a channel
    std::vector<double> std = {1, 1, 1}; // divided by
    std::string layout;                  // "nchw", "nhwc", "chw", "hwc"; "" follows the shape
};

bool is_image_path(const std::string& path);
/// Reads a picture into a tensor of this type and shape: channels (1, 3 or 4) and size come from
/// the shape under the layout; the picture is resized bilinearly with antialiasing, as Pillow does
/// it. Errors: Io, InvalidArgument naming path, got and expected.
Tensor read_image(const std::string& path, DType dtype, const Shape& shape,
                  const ImageOptions& options);

} // namespace ingot
