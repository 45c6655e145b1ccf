// SPDX-License-Identifier: Apache-2.0
// Block quantisation by scales that are computed from the elements.
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

struct BlockQuantization {
    int64_t axis = 0; // blocks lie along it; its size is known and a multiple of the block size
    int64_t size = 1;
    nv::DataType to = nv::DataType::kFP8;
    nv::DataType scale = nv::DataType::kFP8;
};
struct QuantizedBlocks {
    Value elements;
    Value stored_scales; // in how.scale's type, divided by the scale of the scales
    Value scales;        // f32: the factor of an element
};
/// The scale of a block maps its largest element to the largest value of the type. It is divided by
/// the scale of the scales (`second`; may be invalid) and rounded to its own type before use.
QuantizedBlocks quantize_blocks(Graph& g, Value x, const BlockQuantization& how, Value second);

/// Accepts FP4 and FP8. Errors: InvalidArgument.
void check_block_type(nv::DataType t);
/// Accepts FP8 and FLOAT. Errors: InvalidArgument, Unsupported.
void check_block_scale_type(nv::DataType t);

} // namespace ingot::api
