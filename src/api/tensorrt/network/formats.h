// SPDX-License-Identifier: Apache-2.0
// Converts TensorFormat of the public API to IoFormat, and back.
#pragma once

#include "NvInferRuntimeBase.h"
#include "engine/io_format.h"

#include <string>
#include <vector>

namespace ingot::api {

nvinfer1::TensorFormat tensor_format_of(const IoFormat& f);
/// Errors: InvalidArgument naming `what` for a mask without bits, or with bits that are no format.
std::vector<const IoFormat*> formats_of(nvinfer1::TensorFormats mask, std::string_view what);
/// "HALF, channels innermost, padded to a multiple of 8 (kHWC8)".
std::string format_text(const IoFormat& f, DType t);

} // namespace ingot::api
