// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike, BitCast. Casts to 8-bit floats saturate unless `saturate` is 0; casts to 4-bit
// floats always do.
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Values cast_to(NodeContext& c, DType to) {
    bool saturate = c.i("saturate", 1) != 0 || to == DType::F4E2M1;
    bool small = to == DType::F8E4M3 || to == DType::F8E5M2 || to == DType::F4E2M1;
    Value x = c.in(0);
    if (is_float(c.dtype(0)) && (to == DType::I4 || to == DType::U4)) {
        x = ops::cast(c.g, x, DType::I32);
    }
    return {ops::cast(c.g, x, to, small && saturate)};
}

Values cast(NodeContext& c) {
    c.ensure(c.has_attribute("to"), "required attribute 'to' is missing");
    return cast_to(c, dtype_attribute(c, "to", DType::F32));
}

Values cast_like(NodeContext& c) {
    return cast_to(c, c.dtype(1));
}

Values bit_cast(NodeContext& c) {
    c.ensure(c.has_attribute("to"), "required attribute 'to' is missing");
    DType to = dtype_attribute(c, "to", DType::F32);
    c.ensure(bit_width(to) == bit_width(c.dtype(0)), "bit cast of ", c.type(0), " to ", to,
             ": the widths differ");
    return {ops::bitcast(c.g, c.in(0), to)};
}

const ImporterRow rows[] = {
    {"", "Cast", 6, cast, shape_results},
    {"", "CastLike", 15, cast_like, shape_results},
    {"", "BitCast", 26, bit_cast, no_shapes},
};

} // namespace

extern const ImporterTable cast_importers;
const ImporterTable cast_importers = rows;

} // namespace ingot::onnx
