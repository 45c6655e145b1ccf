// SPDX-License-Identifier: Apache-2.0
// Quantisation of blocks by scales that are computed from their elements.
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

struct BlockQuantization {
    int64_t axis = 0; // blocks lie along it; its size is known and a multiple of theirs
    int64_t size = 1;
    nv::DataType to = nv::DataType::kFP8;
    nv::DataType scale = nv::DataType::kFP8;
};
struct QuantizedBlocks {
    Value elements;
    Value stored_scales; // of type how.scale, over the scale of the scales
    Value scales;        // f32: what an element is multiplied with
};
/// The scale of a block takes its largest element to the largest of the type; it is rounded to its
/// own type, over the scale of the scales (`second`; may be invalid), before it is used.
QuantizedBlocks quantize_blocks(Graph& g, Value x, const BlockQuantization& how, Value second);

/// FP4 or FP8. Errors: InvalidArgument.
void check_block_type(nv::DataType t);
/// FP8 or FLOAT. Errors: InvalidArgument, Unsupported.
void check_block_scale_type(nv::DataType t);

} // namespace ingot::api
