// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/attention.h"

#include "base/error.h"

#include <array>
#include <cmath>
#include <limits>

namespace ingot::onnx {

Value split_heads(ingot::Graph& g, Value x, int64_t heads) {
    const Type t = g.type(x);
    require(t.rank() == 3, ErrorCode::InvalidModel, "got ", t,
            ", expected [batch,sequence,hidden]");
    require(heads >= 1 && (!t.dims[2].is_const() || t.dims[2].value() % heads == 0),
            ErrorCode::InvalidModel, "the hidden size of ", t, " does not divide into ", heads,
            " heads");
    Value v = ops::reshape(g, x, {t.dims[0], t.dims[1], heads, floor_div(t.dims[2], heads)});
    return ops::permute(g, v, {0, 2, 1, 3});
}

Value merge_heads(ingot::Graph& g, Value x) {
    const Dims d = ops::dims(g, x);
    return ops::reshape(g, ops::permute(g, x, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

void allow_only(ingot::Graph& g, Masks& m, Value allowed) {
    m.allowed = m.allowed.valid() ? ops::binary(g, ExprOp::And, m.allowed, allowed) : allowed;
}

void add_bias(ingot::Graph& g, Masks& m, Value bias) {
    m.bias = m.bias.valid() ? ops::add(g, m.bias, ops::cast(g, bias, g.type(m.bias).dtype)) : bias;
}

void add_key_mask(const NodeContext& c, Masks& m, Value mask, const Dim& batch, const Dim& keys) {
    ingot::Graph& g = c.g;
    const Dims d = ops::dims(g, mask);
    Value wide = ops::cast(g, mask, DType::I64);
    Value seen;
    if (d.size() == 1) {
        bool both = d[0] == Dim(2) * batch;
        if (!both && d[0].is_const() && batch.is_const() && d[0] != batch) {
            c.refuse(RefusalKind::Size, "the key mask is ", g.type(mask),
                     "; of the forms with one axis only [", batch, "] and [", Dim(2) * batch,
                     "] are supported");
        }
        Value key = key_positions(g, keys);
        Value end = both ? ops::slice(g, wide, 0, 0, batch) : ops::reshape(g, wide, {batch});
        end = ops::unsqueeze(g, end, {1, 2, 3});
        seen = ops::less(g, key, end);
        if (both) {
            Value start = ops::unsqueeze(g, ops::slice(g, wide, 0, batch, batch), {1, 2, 3});
            seen = ops::binary(g, ExprOp::And, seen, not_above(g, start, key));
        }
    } else if (d.size() == 2 || d.size() == 3) {
        c.ensure(
            !d.back().is_const() || d.back() == keys || (!keys.is_const() && !d.back().is_const(1)),
            "the key mask is ", g.type(mask), ", expected one entry for each of ", keys, " keys");
        Value zero = ops::scalar_i64(g, DType::I64, 0);
        seen = ops::logical_not(g, ops::equal(g, wide, zero));
        seen = d.size() == 2 ? ops::unsqueeze(g, seen, {1, 2}) : ops::unsqueeze(g, seen, {1});
    } else {
        c.refuse(RefusalKind::Size, "the key mask is ", g.type(mask),
                 "; only rank 1 to 3 is supported");
    }
    Value hidden = ops::scalar(g, DType::F32, c.f("mask_filter_value", -10000.0));
    add_bias(g, m, ops::select(g, seen, ops::scalar(g, DType::F32, 0), hidden));
}

Value combined(ingot::Graph& g, const Masks& m) {
    if (!m.bias.valid() || !m.allowed.valid()) {
        return m.bias.valid() ? m.bias : m.allowed;
    }
    double hidden = -std::numeric_limits<double>::infinity();
    return ops::select(g, m.allowed, m.bias, ops::scalar(g, g.type(m.bias).dtype, hidden));
}

Value query_positions(ingot::Graph& g, const Dim& queries, Value offset) {
    Value q = ops::iota(g, DType::I64, {1, 1, queries, 1}, 2);
    if (g.type(offset).rank() == 1) {
        offset = ops::unsqueeze(g, offset, {1, 2, 3});
    }
    return ops::add(g, q, offset);
}

Value key_positions(ingot::Graph& g, const Dim& keys) {
    return ops::iota(g, DType::I64, {1, 1, 1, keys}, 3);
}

Value not_above(ingot::Graph& g, Value a, Value b) {
    return ops::binary(g, ExprOp::Le, a, b);
}

Value rotate_heads(ingot::Graph& g, Value x, Value cos, Value sin, int64_t rotated,
                   bool interleaved) {
    const Dims d = ops::dims(g, x);
    Value c = ops::unsqueeze(g, cos, {1});
    Value s = ops::unsqueeze(g, sin, {1});
    if (rotated == 0 || d[3].is_const(rotated)) {
        return ops::rope(g, {interleaved}, x, c, s);
    }
    Value front = ops::rope(g, {interleaved}, ops::slice(g, x, 3, 0, rotated), c, s);
    std::array parts = {front, ops::slice(g, x, 3, rotated, d[3] - Dim(rotated))};
    return ops::concat(g, parts, 3);
}

Value written_at(ingot::Graph& g, Value cache, Value now, Value start) {
    const Dims d = ops::dims(g, cache);
    require(d.size() == 4, ErrorCode::InvalidModel, "the cache is ", g.type(cache),
            ", expected [batch,heads,positions,size]");
    const Dim steps = ops::dims(g, now)[2];
    Dim sequences = d[0] * d[1];
    Value sequence = ops::reshape(g, ops::iota(g, DType::I64, {sequences}, 0), {d[0], d[1], 1});
    Value place =
        ops::add(g, ops::unsqueeze(g, start, {1, 2}), ops::iota(g, DType::I64, {1, 1, steps}, 2));
    Value row = ops::add(g, ops::mul(g, sequence, ops::dim_scalar(g, d[2])), place);
    Value y =
        ops::scatter(g, ops::reshape(g, cache, {sequences * d[2], d[3]}), ops::flatten(g, row),
                     ops::reshape(g, now, {sequences * steps, d[3]}), "none");
    return ops::reshape(g, y, d);
}

Value biased_scores(ingot::Graph& g, Value q, Value k, double scale, Value bias) {
    Value y = ops::dot(g, Dot{{0, 1}, {0, 1}, {3}, {3}, DType::F32}, q, k);
    y = ops::mul(g, y, scale);
    y = bias.valid() ? ops::add(g, y, ops::widen(g, bias)) : y;
    return ops::cast(g, y, g.type(q).dtype);
}

double attention_scale(ingot::Graph& g, double given, Value& q) {
    if (given != 0) {
        return given;
    }
    const Dim size = ops::dims(g, q).back();
    if (size.is_const()) {
        return 1 / std::sqrt(static_cast<double>(size.value()));
    }
    Value root = ops::sqrt(g, ops::dim_scalar(g, size, DType::F32));
    q = ops::div(g, q, ops::cast(g, root, g.type(q).dtype));
    return 1;
}

} // namespace ingot::onnx
