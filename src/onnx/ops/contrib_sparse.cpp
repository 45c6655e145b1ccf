// SPDX-License-Identifier: Apache-2.0
// Attention operators of com.microsoft whose queries see some of the keys: SparseAttention, by
// blocks, and LongformerAttention, by a window and by marked tokens.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// --- SparseAttention

struct Sparse {
    int64_t heads = 1;
    int64_t groups = 1;
    Value q; // [B,H,S,D]
    Value k; // [B,G,S,D]
    Value v;
    Value past; // i64 [B]: keys before this call's
};

Sparse sparse_inputs(NodeContext& c) {
    ingot::Graph& g = c.g;
    Sparse s;
    s.heads = positive(c, "num_heads");
    s.groups = positive(c, "kv_num_heads");
    c.ensure(c.rank(0) == 3 && s.heads % s.groups == 0 && c.has(1) == c.has(2), "query is ",
             c.type(0), " with ", s.heads, " heads in ", s.groups,
             " groups, expected rank 3, a whole number of heads in each group, and key and value "
             "together");
    if (c.has(1)) {
        s.q = split_heads(g, c.in(0), s.heads);
        s.k = split_heads(g, c.in(1), s.groups);
        s.v = split_heads(g, c.in(2), s.groups);
    } else {
        Value all = split_heads(g, c.in(0), s.heads + 2 * s.groups);
        s.q = ops::slice(g, all, 1, 0, s.heads);
        s.k = ops::slice(g, all, 1, s.heads, s.groups);
        s.v = ops::slice(g, all, 1, s.heads + s.groups, s.groups);
    }
    // A prompt with padding has fewer keys than queries, and no past.
    Value total = ops::reshape(g, to_i64(g, c.in(8)), {c.dim(0, 0)});
    Value past = ops::sub(g, total, ops::dim_scalar(g, c.dim(0, 1)));
    s.past = ops::maximum(g, past, ops::scalar_i64(g, DType::I64, 0));
    return s;
}

void rotate(NodeContext& c, Sparse& s) {
    if (c.i("do_rotary", 0) == 0) {
        return;
    }
    ingot::Graph& g = c.g;
    Value step = ops::iota(g, DType::I64, {1, c.dim(0, 1)}, 1);
    Value position = ops::add(g, ops::unsqueeze(g, s.past, {1}), step);
    Value cos = ops::gather(g, c.in(9), position, 0);
    Value sin = ops::gather(g, c.in(10), position, 0);
    const Dim& half = c.dim(9, 1);
    int64_t rotated = half.is_const() ? 2 * half.value() : 0;
    bool interleaved = c.i("rotary_interleaved", 0) != 0;
    s.q = rotate_heads(g, s.q, cos, sin, rotated, interleaved);
    s.k = rotate_heads(g, s.k, cos, sin, rotated, interleaved);
}

// bool [L,R,R] of L layouts: the blocks of keys that each block of queries sees, from their
// compressed rows: where each row's columns begin and end [L,R+1], and all columns [L,N].
Value visible_blocks(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(5) == 2 && c.rank(6) == 2, "block_row_indices and block_col_indices are ",
             c.type(5), " and ", c.type(6), ", expected [layouts,blocks+1] and [layouts,columns]");
    const Dims d = c.type(6).dims;
    Dim blocks = c.dim(5, 1) - Dim(1);
    Value ends = ops::slice(g, to_i64(g, c.in(5)), 1, 1, blocks);
    Value number = ops::iota(g, DType::I64, {1, d[1], 1}, 1);
    Value is_behind = not_above(g, ops::unsqueeze(g, ends, {1}), number); // [L,N,R]
    Value row = ops::reduce_sum(g, to_i64(g, is_behind), {2});
    Value column = to_i64(g, c.in(6));
    std::array place = {ops::iota(g, DType::I64, {d[0], 1}, 0), row, column};
    // Columns behind the last row and of padding get a place of their own.
    Dim all = d[0] * blocks * blocks;
    Value index = row_major_index(g, place, {d[0], blocks, blocks});
    Value outside = ops::less(g, index, ops::scalar_i64(g, DType::I64, 0));
    index = ops::flatten(g, ops::select(g, outside, ops::dim_scalar(g, all), index));
    Value marks = ops::scatter(g, ops::full(g, DType::I32, {all + Dim(1)}, 0), index,
                               ops::full(g, DType::I32, {d[0] * d[1]}, 1), "none");
    marks = ops::reshape(g, ops::slice(g, marks, 0, 0, all), {d[0], blocks, blocks});
    return ops::cast(g, marks, DType::Bool);
}

// bool [B,H,S,T]; head h has layout h % L.
Value visible_keys(NodeContext& c, const Sparse& s, Value query, const Dim& keys) {
    ingot::Graph& g = c.g;
    auto size = static_cast<double>(positive(c, "sparse_block_size"));
    Value blocks = visible_blocks(c);
    const Dims d = ops::dims(g, blocks);
    c.ensure(!d[0].is_const() || (d[0].value() > 0 && s.heads % d[0].value() == 0), "there are ",
             d[0], " layouts for ", s.heads, " heads, expected a divisor");
    Value last = ops::dim_scalar(g, d[1] - Dim(1));
    auto block_of = [&](Value position) {
        return ops::minimum(g, ops::div(g, position, size), last);
    };
    Value key = block_of(ops::iota(g, DType::I64, {keys}, 0));
    Value seen = ops::gather(g, blocks, key, 2);                              // [L,R,T]
    seen = ops::gather(g, seen, block_of(ops::squeeze(g, query, {1, 3})), 1); // [L,B,S,T]
    Dim share = floor_div(Dim(s.heads), d[0]);
    const Dims e = ops::dims(g, seen);
    seen = ops::unsqueeze(g, ops::permute(g, seen, {1, 0, 2, 3}), {1});
    seen = ops::broadcast_to(g, seen, {e[1], share, e[0], e[2], e[3]});
    return ops::reshape(g, seen, {e[1], s.heads, e[2], e[3]});
}

// (queries, [keys], [values], past keys and values, rows and columns of the blocks, largest number
// of keys, numbers of keys [B], [cos], [sin]). The cache keeps its size: the largest number of keys
// does not matter.
Values sparse_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    Sparse s = sparse_inputs(c);
    rotate(c, s);
    Value k = written_at(g, c.in(3), s.k, s.past);
    Value v = written_at(g, c.in(4), s.v, s.past);
    Dim keys = c.dim(3, 2);
    Value query = query_positions(g, c.dim(0, 1), s.past);
    Masks masks;
    allow_only(g, masks, not_above(g, key_positions(g, keys), query));
    allow_only(g, masks, visible_keys(c, s, query, keys));
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), s.q);
    Value y = ops::attention(g, a, s.q, k, v, combined(g, masks));
    return {merge_heads(g, y), k, v};
}

// --- LongformerAttention

// The attention of heads that x [B,S,D] is projected to by inputs `weight` and the next one.
Value projected_attention(NodeContext& c, int weight, const Masks& masks) {
    ingot::Graph& g = c.g;
    int64_t heads = positive(c, "num_heads");
    c.ensure(c.rank(weight) == 2, "input ", weight, " is ", c.type(weight), ", expected rank 2");
    Value all = ops::add(g, ops::matmul(g, c.in(0), c.in(weight)), c.in(weight + 1));
    Dim hidden = floor_div(ops::dims(g, all)[2], 3);
    std::array<Value, 3> part;
    for (size_t i = 0; i < part.size(); ++i) {
        Dim from = Dim(static_cast<int64_t>(i)) * hidden;
        part[i] = split_heads(g, ops::slice(g, all, 2, from, hidden), heads);
    }
    ops::Attention a;
    a.scale = attention_scale(g, 0, part[0]);
    return merge_heads(g, ops::attention(g, a, part[0], part[1], part[2], combined(g, masks)));
}

// (input, weight, bias, mask [B,S] added to the scores, negative for padding, weight and bias of
// global tokens, 1 for global tokens [B,S]). Global tokens see all keys, all others see those in
// the window and the global ones. The results of padding are 0.
Values longformer_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t window = positive(c, "window");
    c.ensure(c.rank(0) == 3 && c.rank(3) == 2 && c.rank(6) == 2, "input, mask and global are ",
             c.type(0), ", ", c.type(3), " and ", c.type(6),
             ", expected [batch,sequence,hidden] and twice [batch,sequence]");
    Masks all;
    add_bias(g, all, ops::unsqueeze(g, ops::widen(g, c.in(3)), {1, 2}));
    Masks near = all;
    Value is_global =
        ops::logical_not(g, ops::equal(g, c.in(6), ops::scalar_i64(g, c.dtype(6), 0)));
    Value query = query_positions(g, c.dim(0, 1), ops::scalar_i64(g, DType::I64, 0));
    Value distance = ops::unary(g, ExprOp::Abs, ops::sub(g, query, key_positions(g, c.dim(0, 1))));
    Value is_near = not_above(g, distance, ops::scalar_i64(g, DType::I64, window));
    allow_only(g, near, ops::binary(g, ExprOp::Or, is_near, ops::unsqueeze(g, is_global, {1, 2})));
    Value y = ops::select(g, ops::unsqueeze(g, is_global, {2}), projected_attention(c, 4, all),
                          projected_attention(c, 1, near));
    Value zero = ops::scalar(g, c.dtype(0), 0);
    Value is_padding = ops::less(g, c.in(3), ops::scalar(g, c.dtype(3), 0));
    return {ops::select(g, ops::unsqueeze(g, is_padding, {2}), zero, y)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "SparseAttention", 1, sparse_attention, no_shapes},
    {"com.microsoft", "LongformerAttention", 1, longformer_attention, no_shapes},
};

} // namespace

extern const ImporterTable contrib_sparse_importers;
const ImporterTable contrib_sparse_importers = rows;

} // namespace ingot::onnx
