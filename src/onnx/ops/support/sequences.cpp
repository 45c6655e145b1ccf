// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/sequences.h"

#include "base/error.h"
#include "onnx/ops/support/inputs.h"

#include <array>

namespace ingot::onnx {

Sequences sequences_of(const NodeContext& c, int i, const Dim& tokens) {
    ingot::Graph& g = c.g;
    const Type t = c.type(i);
    c.ensure(t.rank() == 1 && is_integer(t.dtype), "input ", i, " is ", t,
             ", expected the offsets of the sequences");
    c.ensure(!t.dims[0].is_const() || t.dims[0].value() >= 2, "input ", i, " is ", t,
             ", expected two offsets or more");
    Dim batch = t.dims[0] - Dim(1);
    Value offsets = to_i64(g, c.in(i));
    Sequences s;
    s.begins = ops::slice(g, offsets, 0, 0, batch);
    Value ends = ops::slice(g, offsets, 0, 1, batch);
    s.lengths = ops::sub(g, ends, s.begins);
    Value token = ops::iota(g, DType::I64, {tokens, 1}, 0);
    Value over = ops::logical_not(g, ops::less(g, token, ops::unsqueeze(g, ends, {0})));
    s.sequence = ops::reduce_sum(g, ops::cast(g, over, DType::I64), {1});
    s.place = ops::sub(g, ops::squeeze(g, token, {1}), ops::gather(g, s.begins, s.sequence, 0));
    return s;
}

CarriedRows carried_rows(ingot::Graph& g, Value before, Value tokens) {
    const Dims d = ops::dims(g, before);
    Dims flat(d.begin() + 1, d.end());
    flat[0] = d[0] * d[1];
    std::array parts = {ops::reshape(g, before, flat), tokens};
    return {ops::concat(g, parts, 0), d[0], d[1]};
}

Value rows_at(ingot::Graph& g, const CarriedRows& r, const Sequences& s, Value sequence,
              Value place) {
    Value begin = ops::gather(g, s.begins, sequence, 0);
    Value token = ops::add(g, begin, ops::dim_scalar(g, r.batch * r.carried));
    Value next = ops::add(g, sequence, ops::scalar_i64(g, DType::I64, 1));
    Value carried = ops::mul(g, next, ops::dim_scalar(g, r.carried));
    Value before = ops::less(g, place, ops::scalar_i64(g, DType::I64, 0));
    Value row = ops::add(g, ops::select(g, before, carried, token), place);
    return ops::gather(g, r.rows, row, 0);
}

Value each_sequence(ingot::Graph& g, const Sequences& s, int64_t rank) {
    Dims d(static_cast<size_t>(rank), Dim(1));
    d[0] = ops::dims(g, s.begins)[0];
    return ops::iota(g, DType::I64, d, 0);
}

Value carried_on(ingot::Graph& g, const CarriedRows& r, const Sequences& s) {
    Value last = ops::iota(g, DType::I64, {1, r.carried}, 1);
    last = ops::sub(g, last, ops::dim_scalar(g, r.carried));
    Value place = ops::add(g, ops::unsqueeze(g, s.lengths, {1}), last);
    return rows_at(g, r, s, each_sequence(g, s, 2), place);
}

int64_t update_capacity(const NodeContext& c, int counts, int output) {
    int64_t capacity = c.i("state_update_capacity", 0);
    c.ensure(capacity >= 0 && capacity <= 8, "attribute 'state_update_capacity' is ", capacity,
             ", expected 0 to 8");
    c.ensure(c.has(counts) == (capacity > 0), "attribute 'state_update_capacity' is ", capacity,
             " and capture_count is ", c.has(counts) ? "given" : "left out",
             ", expected a count for a capacity above 0 alone");
    c.ensure(capacity > 0 || !c.wants(output), "output ", output,
             " (state_update) is used with a capacity of 0");
    return capacity;
}

Value updates_kept(ingot::Graph& g, const Sequences& s, Value counts) {
    return ops::minimum(g, to_i64(g, counts), s.lengths);
}

} // namespace ingot::onnx
