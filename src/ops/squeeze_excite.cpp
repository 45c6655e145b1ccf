// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <array>

namespace ingot::ops {

namespace {

void check_types(const Graph& g, std::span<const Value> in) {
    require(in.size() == 5, ErrorCode::InvalidModel, "squeeze_excite takes 5 inputs, got ",
            in.size());
    const Type& x = g.type(in[0]);
    require(is_float(x.dtype) && x.rank() >= 3, ErrorCode::InvalidModel, "squeeze_excite of ", x,
            ": expected floats [N,C,spatial...]");
    const Dim& channels = x.dims[1];
    const Type& w1 = g.type(in[1]);
    require(w1.rank() == 2, ErrorCode::InvalidModel, "squeeze_excite with weights ", w1,
            ": expected rank 2");
    const Dim& hidden = w1.dims[0];
    const std::array<Dims, 4> want{
        Dims{hidden, channels}, {hidden}, {channels, hidden}, {channels}};
    for (size_t i = 0; i < want.size(); ++i) {
        const Type& got = g.type(in[i + 1]);
        Type expected{x.dtype, want[i]};
        require(got == expected, ErrorCode::InvalidModel, "squeeze_excite of ", x, ": input ",
                i + 1, " is ", got, ", expected ", expected);
    }
}

/// The function for elements of type t.
Expr checked_function(const Expr& e, DType t) {
    std::array f32{DType::F32};
    require(!e.code.empty() && e.input_count() == 1 && e.type() == DType::F32,
            ErrorCode::InvalidModel, "squeeze_excite: \"", to_text(e),
            "\" is not a function of one f32");
    verify(e, f32);
    Expr out = e;
    for (ExprInstr& i : out.code) {
        bool wide = t == DType::F64;
        i.type = wide && i.type == DType::F32 ? DType::F64 : i.type;
        i.to = wide && i.to == DType::F32 ? DType::F64 : i.to;
    }
    return out;
}

/// A 1x1 convolution with bias, followed by a scalar function.
Value layer(Graph& g, Value x, Value w, Value b, Expr function) {
    const Type t = g.type(x);
    auto spatial = static_cast<size_t>(t.rank() - 2);
    Dims kernel = g.type(w).dims;
    kernel.resize(kernel.size() + spatial, 1);
    Dims channel(spatial + 1, 1);
    channel[0] = kernel[0];
    Conv c;
    c.strides.assign(spatial, 1);
    c.dilations.assign(spatial, 1);
    c.low.assign(spatial, 0);
    c.high.assign(spatial, 0);
    c.dtype = t.dtype;
    Value y = conv(g, c, x, reshape(g, w, kernel));
    y = add(g, y, reshape(g, b, channel));
    return map(g, std::move(function), t.dtype, std::array{y});
}

Values expand_squeeze_excite(Graph& g, const SqueezeExcite& a, std::span<const Value> in) {
    check_types(g, in);
    const Type t = g.type(in[0]);
    std::vector<int64_t> spatial;
    for (int64_t i = 2; i < t.rank(); ++i) {
        spatial.push_back(i);
    }
    Value mean = cast(g, reduce_mean(g, widen(g, in[0]), spatial, true), t.dtype);
    Value hidden = layer(g, mean, in[1], in[2], checked_function(a.act, t.dtype));
    Value factor = layer(g, hidden, in[3], in[4], checked_function(a.gate, t.dtype));
    return {mul(g, in[0], factor)};
}

} // namespace

Value squeeze_excite(Graph& g, SqueezeExcite a, std::span<const Value> in) {
    return g.add1(squeeze_excite_def, std::move(a), in);
}

const OpDef squeeze_excite_def = composite<SqueezeExcite>(
    "squeeze_excite",
    {[](const Node& n) {
         const auto& a = n.as<SqueezeExcite>();
         return is_smooth(a.act) && is_smooth(a.gate) ? Rounding::Smooth : Rounding::Matters;
     },
     InHalf::Narrow, like_result},
    [](Graph& g, const SqueezeExcite& a, std::span<const Value> in) {
        return expand_squeeze_excite(g, a, in);
    });

} // namespace ingot::ops

namespace ingot {

extern const OpTable squeeze_excite_ops;
static const OpDef* const list[] = {&ops::squeeze_excite_def};
const OpTable squeeze_excite_ops = list;

} // namespace ingot
