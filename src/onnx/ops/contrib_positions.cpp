// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on positions: biases by the distance of query and key
// (RelativePositionBias, GatedRelativePositionBias) and rotations (MRotaryEmbedding,
// GemmaRotaryEmbedding, RMSNormRotary).
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/packing.h"
#include "onnx/ops/support/spatial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace ingot::onnx {

namespace {

// --- RelativePositionBias

struct Buckets {
    int64_t all = 1;
    int64_t side = 1;  // buckets for keys at one side of the query
    int64_t exact = 1; // of these, buckets of one distance each
    int64_t reach = 1; // this distance and larger ones share a bucket
    bool both = false; // keys behind the query have buckets of their own
};

// The logarithms are those of f32, where T5 has them.
int64_t bucket(const Buckets& b, int64_t key_minus_query) {
    bool behind = key_minus_query > 0;
    int64_t first = b.both && behind ? b.side : 0;
    int64_t distance = b.both || !behind ? std::abs(key_minus_query) : 0;
    if (distance < b.exact) {
        return first + distance;
    }
    auto exact = static_cast<float>(b.exact);
    float part = std::log(static_cast<float>(distance) / exact) /
                 std::log(static_cast<float>(b.reach) / exact);
    auto above = static_cast<int64_t>(part * static_cast<float>(b.side - b.exact));
    return first + std::min(b.exact + above, b.side - 1);
}

Buckets buckets_of(const NodeContext& c) {
    c.ensure(c.rank(0) == 2, "bias_table is ", c.type(0), ", expected [buckets,heads]");
    if (!c.dim(0, 0).is_const()) {
        c.refuse(RefusalKind::Dynamic, "bias_table is ", c.type(0),
                 "; the number of buckets must be known");
    }
    constexpr int64_t farthest = 1 << 20;
    Buckets b;
    b.all = c.dim(0, 0).value();
    b.both = c.i("is_bidirectional", 0) != 0;
    b.side = b.both ? b.all / 2 : b.all;
    b.exact = b.side / 2;
    b.reach = positive(c, "max_distance");
    c.ensure(b.exact >= 1 && b.reach > b.exact, "bias_table has ", b.all,
             " buckets and attribute 'max_distance' is ", b.reach, ", expected at least ",
             b.both ? 4 : 2, " buckets and a distance above ", b.exact);
    if (b.reach > farthest) {
        c.refuse(RefusalKind::Attribute, "attribute 'max_distance' is ", b.reach,
                 "; only distances up to ", farthest, " are supported");
    }
    return b;
}

// (table of [heads,buckets] elements, number of queries, number of keys) -> [1,heads,Q,K]
Values relative_position_bias(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Buckets b = buckets_of(c);
    ingot::Tensor of_distance = ingot::Tensor::empty(DType::I64, {2 * b.reach + 1});
    for (int64_t i = 0; i < of_distance.count(); ++i) {
        of_distance.set_i64(i, bucket(b, i - b.reach));
    }
    // The declared shape is [buckets,heads], but the buckets of one head are adjacent.
    Value table = ops::reshape(g, c.in(0), {c.dim(0, 1), Dim(b.all)});
    Value biases = ops::gather(g, table, ops::constant(g, std::move(of_distance)), 1);
    Value query = ops::iota(g, DType::I64, {size_input(c, 1), 1}, 0);
    Value key = ops::iota(g, DType::I64, {1, size_input(c, 2)}, 1);
    auto reach = static_cast<double>(b.reach);
    Value distance = ops::minimum(g, ops::maximum(g, ops::sub(g, key, query), -reach), reach);
    Value y = ops::gather(g, biases, ops::add(g, distance, reach), 1);
    return {ops::unsqueeze(g, y, {0})};
}

// --- GatedRelativePositionBias

// The gate of each query and head [B,H,S,1] in f32, from the projection [B,H,S,D] whose first half
// sums to one logit and whose second half to another.
Value gate(NodeContext& c, Value projected) {
    ingot::Graph& g = c.g;
    const Dims d = ops::dims(g, projected);
    c.ensure(!d[3].is_const() || d[3].value() % 2 == 0, "weight is ", c.type(3),
             ", expected an even number of columns");
    Value halves = ops::reshape(g, projected, {d[0], d[1], d[2], 2, floor_div(d[3], 2)});
    Value both = ops::unary(g, ExprOp::Sigmoid, ops::reduce_sum(g, halves, {4}));
    Value update = ops::slice(g, both, 3, 0, 1);
    Value reset = ops::slice(g, both, 3, 1, 1);
    Value scaled = ops::sub(g, ops::mul(g, reset, ops::widen(g, c.in(5))), 1.0);
    return ops::add(g, ops::mul(g, update, scaled), 2.0);
}

// (queries [B,S,H*D] or, with token_offset, [tokens,H*D], their bias, biases [1,H,S,S], weight,
// its bias, eco_a [1,H,1,1], [token_offset]) -> [B,H,S,S]
Values gated_relative_position_bias(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t rank = c.has(6) ? 2 : 3;
    c.ensure(c.rank(0) == rank && c.rank(3) == 2, "query_layer and weight are ", c.type(0), " and ",
             c.type(3), ", expected rank ", rank, " and rank 2");
    Value x = c.has(6) ? with_padding(g, c.in(0), c.in(6)) : c.in(0);
    Value q = split_heads(g, ops::add(g, x, c.in(1)), positive(c, "num_heads"));
    Value projected = ops::dot(g, Dot{{}, {}, {3}, {0}, DType::F32}, q, c.in(3));
    projected = ops::add(g, projected, ops::widen(g, c.in(4)));
    Value y = ops::mul(g, gate(c, projected), ops::widen(g, c.in(2)));
    return {ops::cast(g, y, c.dtype(0))};
}

// --- MRotaryEmbedding

// i64 [D/2]: the stream of positions (time, height or width) that turns each pair.
Value streams(const NodeContext& c, int64_t pairs, const std::vector<int64_t>& sections) {
    int64_t layout = c.i("mrope_layout", 0);
    c.ensure(layout == 0 || layout == 1, "attribute 'mrope_layout' is ", layout,
             ", expected 0 (one section after the other) or 1 (interleaved)");
    std::vector<int64_t> out(static_cast<size_t>(pairs), 0);
    for (int64_t i = 0; i < pairs; ++i) {
        auto at = static_cast<size_t>(i);
        if (layout == 0) {
            out[at] = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
        } else {
            auto stream = static_cast<size_t>(i % 3);
            out[at] = i < 3 * sections[stream] ? i % 3 : 0;
        }
    }
    return ops::i64_list(c.g, out);
}

int64_t pairs_of(const NodeContext& c, const std::vector<int64_t>& sections) {
    c.ensure(
        sections.size() == 3 &&
            std::ranges::all_of(sections, [](int64_t s) { return s >= 0 && s <= largest_count; }),
        "attribute 'mrope_section' is ", sections, ", expected three numbers of at least 0");
    int64_t pairs = sections[0] + sections[1] + sections[2];
    const Dim& columns = c.dim(2, 1);
    c.ensure(!columns.is_const() || columns.is_const(pairs), "attribute 'mrope_section' is ",
             sections, ", ", pairs, " together, but cos_cache is ", c.type(2));
    return pairs;
}

// (x [B,S,H*D] or [B,H,S,D], positions [3,B,S], cos and sin [positions,D/2])
Values multimodal_rotary(NodeContext& c) {
    ingot::Graph& g = c.g;
    bool merged = c.rank(0) == 3;
    c.ensure((merged || c.rank(0) == 4) && c.rank(1) == 3 && c.rank(2) == 2 && c.rank(3) == 2,
             "input and position_ids are ", c.type(0), " and ", c.type(1),
             ", expected rank 3 or 4, and [3,batch,sequence]");
    Value x = merged ? split_heads(g, c.in(0), positive(c, "num_heads")) : c.in(0);
    const std::vector<int64_t> sections = c.ints("mrope_section");
    int64_t pairs = pairs_of(c, sections);
    // Each pair's element of the flat tables, [B,S,D/2].
    Value position = ops::gather(g, c.in(1), streams(c, pairs, sections), 0);
    position = ops::permute(g, position, {1, 2, 0});
    Value index = ops::add(g, ops::mul(g, position, static_cast<double>(pairs)),
                           ops::iota(g, DType::I64, {pairs}, 0));
    double scale = c.f("scale", 1);
    auto row = [&](int i) {
        Value v = ops::gather(g, ops::flatten(g, c.in(i)), index, 0);
        return scale == 1 ? v : ops::cast(g, ops::mul(g, ops::widen(g, v), scale), c.dtype(i));
    };
    // Attribute is_packed_batching only lets a sequence be longer than the tables.
    Value y = rotate_heads(g, x, row(2), row(3), c.i("rotary_embedding_dim", 0),
                           c.i("interleaved", 0) != 0);
    return {merged ? merge_heads(g, y) : y};
}

// --- GemmaRotaryEmbedding

// (angles [B,S,D], queries [B,H,S,D], the same with halves swapped, keys, the same swapped)
Values gemma_rotary(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 3, "emb is ", c.type(0), ", expected [batch,sequence,size]");
    auto table = [&](ExprOp op) {
        Value v = ops::cast(g, ops::unary(g, op, c.in(0)), c.dtype(1));
        return ops::unsqueeze(g, v, {1});
    };
    Value cos = table(ExprOp::Cos);
    Value sin = table(ExprOp::Sin);
    auto rotated = [&](int i) {
        return ops::add(g, ops::mul(g, c.in(i), cos), ops::mul(g, c.in(i + 1), sin));
    };
    return {rotated(1), rotated(3)};
}

// --- RMSNormRotary

// The heads [B,S,H,D] that are normalised, in f32.
Value normalised_heads(NodeContext& c, bool rounds) {
    ingot::Graph& g = c.g;
    int64_t start = c.i("input_start", 0);
    int64_t width = c.i("input_width", 0);
    c.ensure(c.rank(0) == 4 && start >= 0 && width >= 0 && (width > 0 || start == 0), "X is ",
             c.type(0), ", attributes 'input_start' and 'input_width' are ", start, " and ", width,
             ", expected [batch,sequence,heads,size] and a part of the last axis");
    Value x = width > 0 ? ops::slice(g, c.in(0), 3, start, width) : c.in(0);
    Value y = ops::layer_norm(g, {-1, c.f("epsilon", 1e-6F), true}, ops::widen(g, x), c.in(1));
    return rounds ? ops::widen(g, ops::cast(g, y, DType::BF16)) : y;
}

// i64 [B or 1,S], from all positions or from the first one.
Value rotary_positions(NodeContext& c, bool flat) {
    ingot::Graph& g = c.g;
    const Type t = c.type(2);
    if (!product(t.dims).is_const(1)) {
        return ops::reshape(g, c.in(2), {c.dim(0, 0), c.dim(0, 1)});
    }
    if (flat && !c.dim(0, 0).is_const(1)) {
        c.refuse(RefusalKind::Input, "position_ids is ", t, " and attribute 'flatten_batch' is 1 ",
                 "for ", c.type(0), "; give the positions of all tokens");
    }
    Value step = ops::iota(g, DType::I64, {1, c.dim(0, 1)}, 1);
    return ops::add(g, ops::reshape(g, c.in(2), {1, 1}), step);
}

// (X [B,S,H,size], scale, positions, cos and sin [positions,D/2], [prefill_numerics]). The
// attribute and the input that choose between orders of rounding to bf16 do not matter: the
// rotation is in f32.
Values rms_norm_rotary(NodeContext& c) {
    ingot::Graph& g = c.g;
    DType t = c.i("output_fp16", 0) != 0 ? DType::F16 : DType::BF16;
    bool flat = c.i("flatten_batch", 0) != 0;
    bool rounds = c.dtype(0) == DType::BF16 && t == DType::BF16 && c.dtype(3) == DType::BF16;
    Value x = normalised_heads(c, rounds);
    Value position = rotary_positions(c, flat);
    int64_t rotated = positive(c, "rotary_embedding_dim");
    auto row = [&](int i) { return ops::widen(g, ops::gather(g, c.in(i), position, 0)); };
    Value y = rotate_heads(g, ops::permute(g, x, {0, 2, 1, 3}), row(3), row(4), rotated, false);
    y = ops::cast(g, merge_heads(g, y), t);
    const Dims d = ops::dims(g, y);
    return {flat ? ops::reshape(g, y, {1, d[0] * d[1], d[2]}) : y, x};
}

const ImporterRow rows[] = {
    {"com.microsoft", "RelativePositionBias", 1, relative_position_bias, shape_inputs({1, 2})},
    {"com.microsoft", "GatedRelativePositionBias", 1, gated_relative_position_bias, no_shapes},
    {"com.microsoft", "MRotaryEmbedding", 1, multimodal_rotary, no_shapes},
    {"com.microsoft", "GemmaRotaryEmbedding", 1, gemma_rotary, no_shapes},
    {"com.microsoft", "RMSNormRotary", 1, rms_norm_rotary, no_shapes},
};

} // namespace

extern const ImporterTable contrib_positions_importers;
const ImporterTable contrib_positions_importers = rows;

} // namespace ingot::onnx
