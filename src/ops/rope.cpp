// SPDX-License-Identifier: Apache-2.0
// rope: rotates pairs of the last axis by angles given as cosines and sines, in f32 for small
// floats.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

#include <array>

namespace ingot::ops {

namespace {

Values expand_rope(Graph& g, const Rope& a, std::span<const Value> in) {
    require(in.size() == 3, ErrorCode::InvalidModel, "rope takes 3 inputs, got ", in.size());
    const Type t = g.type(in[0]);
    require(is_float(t.dtype) && t.rank() >= 1, ErrorCode::InvalidModel, "rope of ", t,
            ": expected floats of rank 1 at least");
    const Dim& size = t.dims.back();
    require(!size.is_const() || size.value() % 2 == 0, ErrorCode::InvalidModel, "rope of ", t,
            ": the last axis has ", size, " elements, expected an even number");
    Dim half = floor_div(size, 2);
    Value x = widen(g, in[0]);
    DType wide = g.type(x).dtype;
    Value cos = cast(g, in[1], wide);
    Value sin = cast(g, in[2], wide);
    int64_t step = a.interleaved ? 2 : 1;
    Value first = slice(g, x, -1, 0, half, step);
    Value second = slice(g, x, -1, a.interleaved ? Dim(1) : half, half, step);
    Value real = sub(g, mul(g, first, cos), mul(g, second, sin));
    Value imag = add(g, mul(g, first, sin), mul(g, second, cos));
    if (a.interleaved) {
        std::array pair = {unsqueeze(g, real, {-1}), unsqueeze(g, imag, {-1})};
        return {cast(g, reshape(g, concat(g, pair, -1), t.dims), t.dtype)};
    }
    std::array pair = {real, imag};
    return {cast(g, reshape(g, concat(g, pair, -1), t.dims), t.dtype)};
}

} // namespace

Value rope(Graph& g, Rope a, Value x, Value cos, Value sin) {
    return g.add1(rope_def, a, {x, cos, sin});
}

const OpDef rope_def = composite<Rope>(
    "rope", {Rounding::Smooth, InHalf::Narrow, parameters_from(1)},
    [](Graph& g, const Rope& a, std::span<const Value> in) { return expand_rope(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable rope_ops;
static const OpDef* const list[] = {&ops::rope_def};
const OpTable rope_ops = list;

} // namespace ingot
