// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/layers/packed.h"

#include "api/tensorrt/layers/checks.h"

namespace ingot::api {

namespace {

Value both(Graph& g, Value a, Value b) {
    return ops::binary(g, ExprOp::And, a, b);
}

} // namespace

Tokens packed_tokens(Graph& g, const Dim& count, Value starts) {
    starts = as_dtype(g, starts, DType::I64);
    const Dim batch = g.type(starts).dims[0] - 1;
    Value ends = ops::slice(g, starts, 0, 1, batch);
    Value token = ops::iota(g, DType::I64, {count}, 0);
    Value ended = ops::binary(g, ExprOp::Le, ends, ops::unsqueeze(g, token, {1})); // tokens x batch
    Tokens t;
    t.sequence = ops::reduce_sum(g, ops::cast(g, ended, DType::I64), {1});
    t.place = ops::sub(g, token, ops::gather(g, starts, t.sequence, 0));
    t.length = ops::sub(g, ends, ops::slice(g, starts, 0, 0, batch));
    return t;
}

Tokens padded_tokens(Graph& g, const Dim& batch, const Dim& size, Value lengths) {
    Tokens t;
    const Dims both_axes = {batch, size};
    t.sequence = ops::flatten(g, ops::iota(g, DType::I64, both_axes, 0));
    t.place = ops::flatten(g, ops::iota(g, DType::I64, both_axes, 1));
    t.length = ops::broadcast_to(g, ops::dim_scalar(g, size), {batch});
    if (lengths.valid()) {
        Value real = ops::reshape(g, as_dtype(g, lengths, DType::I64), {batch});
        t.inside = ops::less(g, t.place, ops::gather(g, real, t.sequence, 0));
    }
    return t;
}

Value of_tokens(Graph& g, const Tokens& t, Value of_sequences) {
    Value last = ops::dim_scalar(g, g.type(of_sequences).dims[0] - 1);
    return ops::gather(g, of_sequences, ops::minimum(g, t.sequence, last), 0);
}

Value visible_tokens(Graph& g, const Tokens& queries, const Tokens& keys, bool causal, bool right) {
    auto rows = [&](Value v) { return ops::unsqueeze(g, v, {1}); };
    Value visible = ops::equal(g, rows(queries.sequence), keys.sequence);
    if (keys.inside.valid()) {
        visible = both(g, visible, keys.inside);
    }
    if (causal) {
        Value last = queries.place;
        if (right) {
            last =
                ops::add(g, last, of_tokens(g, queries, ops::sub(g, keys.length, queries.length)));
        }
        visible = both(g, visible, ops::binary(g, ExprOp::Le, keys.place, rows(last)));
    }
    return visible;
}

} // namespace ingot::api
