// SPDX-License-Identifier: Apache-2.0
// attention: two contractions around a masked softmax in f32 (f64 for f64). A fully masked query
// gives zeros.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

#include <array>
#include <limits>

namespace ingot::ops {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

void check_attention(const Type& q, const Type& k, const Type& v) {
    require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && is_float(q.dtype),
            ErrorCode::InvalidModel, "attention of ", q, ", ", k, " and ", v,
            ": expected floats of rank 4");
    require(q.dtype == k.dtype && q.dtype == v.dtype, ErrorCode::InvalidModel, "attention of ", q,
            ", ", k, " and ", v, ": the element types differ");
    bool known = q.dims[1].is_const() && k.dims[1].is_const();
    require(!known || (k.dims[1].value() > 0 && q.dims[1].value() % k.dims[1].value() == 0),
            ErrorCode::InvalidModel, "attention of ", q, " and ", k, ": ", q.dims[1],
            " query heads are not a multiple of ", k.dims[1], " key heads");
}

// [B,H,S,T] from q [B,H,S,D] and k [B,G,T,D], or [B,H,S,E] from p [B,H,S,T] and v [B,G,T,E]:
// contracts the last axis of a with axis `axis` of b, head by head.
Value by_head(Graph& g, Value a, Value b, int64_t axis, DType dtype) {
    const Dims ad = dims(g, a);
    const Dims bd = dims(g, b);
    if (ad[1] == bd[1]) {
        return dot(g, Dot{{0, 1}, {0, 1}, {3}, {axis}, dtype}, a, b);
    }
    Dim rows = floor_div(ad[1], bd[1]) * ad[2]; // of all heads that share one head of b
    Value wide = reshape(g, a, {ad[0], bd[1], rows, ad[3]});
    Value y = dot(g, Dot{{0, 1}, {0, 1}, {3}, {axis}, dtype}, wide, b);
    return reshape(g, y, {ad[0], ad[1], ad[2], bd[axis == 3 ? 2 : 3]});
}

Value masked(Graph& g, Value scores, Value mask) {
    if (g.type(mask).dtype == DType::Bool) {
        return select(g, mask, scores, scalar(g, g.type(scores).dtype, minus_infinity));
    }
    return add(g, scores, cast(g, mask, g.type(scores).dtype));
}

Value causal(Graph& g, Value scores, const Dim& offset) {
    const Dims d = dims(g, scores);
    Value query = add(g, iota(g, DType::I64, {d[2], 1}, 0), dim_scalar(g, offset));
    Value key = iota(g, DType::I64, {1, d[3]}, 1);
    Value hidden = less(g, query, key);
    return select(g, hidden, scalar(g, g.type(scores).dtype, minus_infinity), scores);
}

Values expand_attention(Graph& g, const Attention& a, std::span<const Value> in) {
    require(in.size() == 3 || in.size() == 4, ErrorCode::InvalidModel,
            "attention takes 3 or 4 inputs, got ", in.size());
    const Type q = g.type(in[0]);
    check_attention(q, g.type(in[1]), g.type(in[2]));
    DType wide = q.dtype == DType::F64 ? DType::F64 : DType::F32;
    Value scores = mul(g, by_head(g, in[0], in[1], 3, wide), a.scale);
    if (a.softcap > 0) {
        scores = mul(g, unary(g, ExprOp::Tanh, div(g, scores, a.softcap)), a.softcap);
    }
    if (in.size() == 4) {
        scores = masked(g, scores, in[3]);
        require(g.type(scores).rank() == 4, ErrorCode::InvalidModel, "attention mask ",
                g.type(in[3]), " does not broadcast to [B,H,S,T]");
    }
    scores = a.causal ? causal(g, scores, a.offset) : scores;
    Value y = by_head(g, softmax(g, scores, 3), widen(g, in[2]), 2, wide);
    bool may_hide_all = in.size() == 4 || (a.causal && a.offset.bounds().low < 0);
    if (may_hide_all) {
        // The weights of a fully masked row are no numbers.
        Value hidden = equal(g, reduce_max(g, scores, {3}, true), scalar(g, wide, minus_infinity));
        y = select(g, hidden, scalar(g, wide, 0), y);
    }
    return {cast(g, y, q.dtype)};
}

} // namespace

Value attention(Graph& g, Attention a, Value q, Value k, Value v, Value mask) {
    return mask.valid() ? g.add1(attention_def, std::move(a), {q, k, v, mask})
                        : g.add1(attention_def, std::move(a), {q, k, v});
}

const OpDef attention_def =
    composite<Attention>("attention", {Rounding::Smooth, InHalf::Narrow, parameters_from(3)},
                         [](Graph& g, const Attention& a, std::span<const Value> in) {
                             return expand_attention(g, a, in);
                         });

} // namespace ingot::ops

namespace ingot {

extern const OpTable attention_ops;
static const OpDef* const list[] = {&ops::attention_def};
const OpTable attention_ops = list;

} // namespace ingot
