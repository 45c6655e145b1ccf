// SPDX-License-Identifier: Apache-2.0
// Dropouts of com.microsoft in inference: nothing is dropped, and masks hold ones.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Value bool_mask(NodeContext& c) {
    return c.wants(1) ? ops::full(c.g, DType::Bool, c.type(0).dims, 1) : Value{};
}

// A bit an element, in whole words.
Value bit_mask(NodeContext& c) {
    Dim words = ceil_div(product(c.type(0).dims), 32);
    return c.wants(1) ? ops::full(c.g, DType::U32, {words}, UINT32_MAX) : Value{};
}

// (data, bias, [residual], [ratio], [training_mode])
Value biased(NodeContext& c) {
    require_inference(c, 3, 4);
    Value y = ops::add(c.g, c.in(0), c.in(1));
    return c.has(2) ? ops::add(c.g, y, c.in(2)) : y;
}

Values bias_dropout(NodeContext& c) {
    return {biased(c), bool_mask(c)};
}

Values bitmask_bias_dropout(NodeContext& c) {
    return {biased(c), bit_mask(c)};
}

Values bitmask_dropout(NodeContext& c) {
    require_inference(c, 1, 2);
    return {c.in(0), bit_mask(c)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "BiasDropout", 1, bias_dropout, no_shapes},
    {"com.microsoft", "BitmaskBiasDropout", 1, bitmask_bias_dropout, no_shapes},
    {"com.microsoft", "BitmaskDropout", 1, bitmask_dropout, no_shapes},
};

} // namespace

extern const ImporterTable contrib_dropout_importers;
const ImporterTable contrib_dropout_importers = rows;

} // namespace ingot::onnx
