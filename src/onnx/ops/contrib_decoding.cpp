// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft around the decoding of text: NGramRepeatBlock, BifurcationDetector,
// DynamicTimeWarping.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <limits>
#include <memory>

namespace ingot::onnx {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Value both(ingot::Graph& g, Value a, Value b) {
    return ops::binary(g, ExprOp::And, a, b);
}

Value not_above(ingot::Graph& g, Value a, Value b) {
    return ops::binary(g, ExprOp::Le, a, b);
}

Value i64(ingot::Graph& g, int64_t v) {
    return ops::scalar_i64(g, DType::I64, v);
}

// --- NGramRepeatBlock

// The last token of each n-gram whose other tokens end the sequence is banned. With n tokens in
// front, a sequence shorter than n has n-grams too; those that reach into the front do not count.
Values ngram_repeat_block(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t n = positive(c, "ngram_size");
    c.ensure(c.rank(0) == 2 && c.rank(1) == 2, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [batch,sequence] and [batch,vocabulary]");
    const Dims scores = c.type(1).dims;
    const Dim batch = c.dim(0, 0);
    const Dim count = c.dim(0, 1) + Dim(1);
    Value ids = ops::pad(g, to_i64(g, c.in(0)), {Dim(0), Dim(n)}, {Dim(0), Dim(0)}, -1);
    Value grams = ops::window(g, ids, Window{{1}, {n}, {1}, {1}}); // [batch,count,n]
    Value banned = not_above(g, i64(g, n), ops::iota(g, DType::I64, {Dim(1), count}, 1));
    if (n > 1) {
        Value end = ops::slice(g, ids, 1, count, n - 1);
        Value same = ops::equal(g, ops::slice(g, grams, 2, 0, n - 1), ops::unsqueeze(g, end, {1}));
        banned = both(g, banned, ops::reduce(g, "min", same, {2}));
    }
    Value token = ops::squeeze(g, ops::slice(g, grams, 2, n - 1, 1), {2});
    token = ops::select(g, banned, token, i64(g, 0));
    const Values coordinates = {coordinate(g, {batch, count}, 0), token};
    Value at = row_major_index(g, coordinates, scores);
    DType t = c.dtype(1);
    Value most = ops::select(g, banned, ops::scalar(g, t, -infinity), ops::scalar(g, t, infinity));
    most = ops::broadcast_to(g, most, {batch, count});
    Value y = ops::scatter(g, ops::flatten(g, c.in(1)), ops::flatten(g, at), ops::flatten(g, most),
                           "min");
    return {ops::reshape(g, y, scores)};
}

// --- BifurcationDetector

// The current tokens, and behind them the predicted ones that equal the source's from the last
// match on, with the first that differs.
Value merged_tokens(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (!c.has(3)) {
        return c.in(1);
    }
    c.ensure(c.rank(3) == 1, "input 3 is ", c.type(3), ", expected a list of tokens");
    const Dim compared = c.dim(3, 0) - Dim(1);
    const Dim start = size_input(c, 2);
    Value source = ops::slice(g, c.in(0), 0, start, c.dim(0, 0) - start);
    Value same =
        ops::equal(g, ops::slice(g, c.in(3), 0, 0, compared), ops::reshape(g, source, {compared}));
    Value run = ops::scan(g, Scan{"min", 0, false, false}, ops::cast(g, same, DType::I64));
    Value kept = ops::add(g, ops::reduce_sum(g, run, {0}), 1.0);
    Values parts = {c.in(1), ops::slice(g, c.in(3), 0, 0, ops::dims_from(g, kept)[0])};
    return ops::concat(g, parts, 0);
}

// bool [length + 1]: whether the last n tokens stand in the source from each place on. Both are
// filled up, so that short ones have n-grams too.
Value matches(ingot::Graph& g, Value source, Value tokens, int64_t n) {
    const Dim length = ops::dims(g, source)[0];
    Value grams = ops::pad(g, source, {Dim(0)}, {Dim(n)}, -1);
    grams = ops::window(g, grams, Window{{0}, {n}, {1}, {1}});
    Value padded = ops::pad(g, tokens, {Dim(n)}, {Dim(0)}, -1);
    Value end = ops::slice(g, padded, 0, ops::dims(g, tokens)[0], n);
    Value same = ops::reduce(g, "min", ops::equal(g, grams, ops::unsqueeze(g, end, {0})), {1});
    Value place = ops::iota(g, DType::I64, {length + Dim(1)}, 0);
    place = ops::add(g, place, static_cast<double>(n));
    return both(g, same, not_above(g, place, ops::dim_scalar(g, length)));
}

// Beside the tokens: the end of the only place in the source that equals the last n of them, for
// the largest n that has a match; -1 for several places, unless the first one ends the source.
Values bifurcation_detector(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t least = positive(c, "min_ngram_size", 1);
    int64_t most = positive(c, "max_ngram_size", 3);
    c.ensure(least <= most, "attributes 'min_ngram_size' and 'max_ngram_size' are ", least, " and ",
             most, ", expected the first to be no larger");
    if (most - least >= 64) {
        c.refuse(RefusalKind::Size, "n-grams of ", least, " to ", most,
                 " tokens are compared; more than 64 sizes are not supported");
    }
    for (int i : {0, 1}) {
        c.ensure(c.rank(i) == 1, "input ", i, " is ", c.type(i), ", expected a list of tokens");
    }
    Value tokens = merged_tokens(c);
    Value count = ops::dim_scalar(g, ops::dims(g, tokens)[0]);
    Value length = ops::dim_scalar(g, c.dim(0, 0));
    Value open = ops::scalar_i64(g, DType::Bool, 1);
    Value found = i64(g, -1);
    for (int64_t n = least; n <= most; ++n) {
        Value match = matches(g, c.in(0), tokens, n);
        Value places = ops::reduce_sum(g, ops::cast(g, match, DType::I64), {0});
        Value first = ops::arg_reduce(g, "max", ops::cast(g, match, DType::I32), 0);
        Value end = ops::add(g, first, static_cast<double>(n));
        open = both(g, open, not_above(g, i64(g, n), count));
        open = both(g, open, not_above(g, i64(g, 1), places));
        Value at_end = not_above(g, length, end);
        Value clear = ops::binary(g, ExprOp::Or, not_above(g, places, i64(g, 1)), at_end);
        found = ops::select(g, open, ops::select(g, clear, end, i64(g, -1)), found);
        open = both(g, open, ops::logical_not(g, at_end));
    }
    return {tokens, ops::reshape(g, found, c.type(2).dims)};
}

// --- DynamicTimeWarping

// v [n] moved by one, with infinity in front.
Value moved(ingot::Graph& g, Value v) {
    Value kept = ops::slice(g, v, 0, 0, ops::dims(g, v)[0] - Dim(1));
    return ops::pad(g, kept, {Dim(1)}, {Dim(0)}, infinity);
}

// One diagonal: (d, condition, costs on the last and on the last but one diagonal [rows + 1], x
// [rows * columns]). Element i is of row i; row 0 and column 0 are the border. Scans the way that
// each element was reached: 0 from row and column before, 1 from the row before, 2 from the column
// before.
ingot::Graph next_diagonal(const ingot::Graph& outer, const Dim& rows, const Dim& columns,
                           DType t) {
    ingot::Graph g = outer.sibling("next_diagonal");
    const Dim all = rows + Dim(1);
    Value d = g.add_input("d", {DType::I64, {}});
    g.add_input("condition", {DType::Bool, {}});
    Value last = g.add_input("last", {t, {all}});
    Value before = g.add_input("before", {t, {all}});
    Value x = g.add_input("x", {t, {rows * columns}});

    Value corner = moved(g, before);
    Value above = moved(g, last);
    Value by_corner = both(g, ops::less(g, corner, above), ops::less(g, corner, last));
    Value by_above = both(g, ops::less(g, above, corner), ops::less(g, above, last));
    auto chosen = [&](Value a, Value b, Value rest) {
        return ops::select(g, by_corner, a, ops::select(g, by_above, b, rest));
    };
    Value cost = chosen(corner, above, last);

    // Row i meets column d + 2 - i.
    Value row = ops::iota(g, DType::I64, {all}, 0);
    Value column = ops::sub(g, ops::add(g, d, 2.0), row);
    Value inside = both(g, ops::less(g, i64(g, 0), row), ops::less(g, i64(g, 0), column));
    inside = both(g, inside, not_above(g, column, ops::dim_scalar(g, columns)));
    Value at = ops::mul(g, ops::sub(g, row, 1.0), ops::dim_scalar(g, columns));
    at = ops::add(g, at, ops::sub(g, column, 1.0));
    cost = ops::add(g, cost, ops::gather(g, x, ops::select(g, inside, at, i64(g, 0)), 0));
    cost = ops::select(g, inside, cost, ops::scalar(g, t, infinity));

    g.add_output("condition", ops::scalar_i64(g, DType::Bool, 1));
    g.add_output("cost", cost);
    g.add_output("last", last);
    g.add_output("way", chosen(i64(g, 0), i64(g, 1), i64(g, 2)));
    return g;
}

// One step back: (k, condition, i, j, ways [diagonals * (rows + 1)]); scans row and column.
ingot::Graph step_back(const ingot::Graph& outer, const Type& ways, const Dim& rows) {
    ingot::Graph g = outer.sibling("step_back");
    g.add_input("k", {DType::I64, {}});
    g.add_input("condition", {DType::Bool, {}});
    Value i = g.add_input("i", {DType::I64, {}});
    Value j = g.add_input("j", {DType::I64, {}});
    Value all = g.add_input("ways", ways);
    Value diagonal = ops::sub(g, ops::add(g, i, j), 2.0);
    Value at = ops::add(g, ops::mul(g, diagonal, ops::dim_scalar(g, rows + Dim(1))), i);
    Value way = ops::gather(g, all, at, 0);
    Value before_i = ops::sub(g, i, 1.0);
    Value before_j = ops::sub(g, j, 1.0);
    Value next_i = ops::select(g, ops::equal(g, way, i64(g, 2)), i, before_i);
    Value next_j = ops::select(g, ops::equal(g, way, i64(g, 1)), j, before_j);
    Value going = both(g, ops::less(g, i64(g, 0), next_i), ops::less(g, i64(g, 0), next_j));
    Values place = {ops::reshape(g, before_i, {1}), ops::reshape(g, before_j, {1})};
    g.add_output("condition", going);
    g.add_output("i", next_i);
    g.add_output("j", next_j);
    g.add_output("place", ops::concat(g, place, 0));
    return g;
}

// Costs go by diagonals, whose elements do not depend on each other; the path goes back from the
// last element.
Values dynamic_time_warping(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims dims = c.type(0).dims;
    bool one = dims.size() == 3 && (!dims[0].is_const() || dims[0].is_const(1));
    c.ensure(dims.size() == 2 || one, "input 0 is ", c.type(0), ", expected [M,N] or [1,M,N]");
    const Dim& rows = dims[dims.size() - 2];
    const Dim& columns = dims.back();
    const Dim diagonals = rows + columns - Dim(1);
    DType t = c.dtype(0);
    Value x = ops::reshape(g, c.in(0), {rows * columns});
    Value first = ops::iota(g, DType::I64, {rows + Dim(1)}, 0);
    first = ops::select(g, ops::binary(g, ExprOp::Eq, first, 0.0), ops::scalar(g, t, 0),
                        ops::scalar(g, t, infinity));
    Value going = ops::scalar_i64(g, DType::Bool, 1);

    Loop forth;
    forth.body = std::make_shared<const ingot::Graph>(next_diagonal(g, rows, columns, t));
    forth.carried = 2;
    forth.count = diagonals;
    Values in = {ops::dim_scalar(g, diagonals), going, ops::full(g, t, {rows + Dim(1)}, infinity),
                 first, x};
    Value ways = ops::flatten(g, g.add(loop_def, std::move(forth), in)[2]);

    Loop back;
    back.body = std::make_shared<const ingot::Graph>(step_back(g, g.type(ways), rows));
    back.carried = 2;
    back.count = g.fresh_symbol();
    Values from = {ops::dim_scalar(g, diagonals), going, ops::dim_scalar(g, rows),
                   ops::dim_scalar(g, columns), ways};
    Value path = g.add(loop_def, std::move(back), from)[2]; // [count,2]
    path = ops::permute(g, ops::reverse(g, path, 0), {1, 0});
    return {ops::cast(g, path, DType::I32)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "NGramRepeatBlock", 1, ngram_repeat_block, no_shapes},
    {"com.microsoft", "BifurcationDetector", 1, bifurcation_detector, shape_inputs({2})},
    {"com.microsoft", "DynamicTimeWarping", 1, dynamic_time_warping, no_shapes},
};

} // namespace

extern const ImporterTable contrib_decoding_importers;
const ImporterTable contrib_decoding_importers = rows;

} // namespace ingot::onnx
