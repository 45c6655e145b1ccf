// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over integers: compares windows of the input with every n-gram of the pool.
#include "onnx/ops/support/inputs.h"

#include <algorithm>
#include <set>

namespace ingot::onnx {

namespace {

struct Pool {
    std::vector<int64_t> tokens;
    std::vector<int64_t> begins; // offsets in tokens of the 1-grams, 2-grams, ...
    int64_t absent = 0;          // a number that no n-gram contains
};

Pool read_pool(NodeContext& c) {
    if (c.has_attribute("pool_strings")) {
        c.refuse(RefusalKind::DataType, "string tensors are not supported");
    }
    Pool p{c.ints("pool_int64s"), c.ints("ngram_counts"), 0};
    p.begins.push_back(static_cast<int64_t>(p.tokens.size()));
    for (size_t i = 0; i < p.begins.size(); ++i) {
        int64_t low = i == 0 ? 0 : p.begins[i - 1];
        c.ensure(p.begins[i] >= low && p.begins[i] <= p.begins.back(),
                 "attribute 'ngram_counts' is ", c.ints("ngram_counts"), " for a pool of ",
                 p.tokens.size(), " elements");
        int64_t length = static_cast<int64_t>(i);
        c.ensure(i == 0 || (p.begins[i] - low) % length == 0, "the ", length, "-grams have ",
                 p.begins[i] - low, " elements together");
    }
    const std::set<int64_t> present(p.tokens.begin(), p.tokens.end());
    while (present.count(p.absent) != 0) {
        ++p.absent;
    }
    return p;
}

// f32 [rows, n-grams]: the number of occurrences of each n-gram of one length in x [rows, n], with
// a distance between its tokens.
Value occurrences(ingot::Graph& g, Value x, const Pool& p, int64_t length, int64_t distance) {
    auto at = static_cast<size_t>(length);
    int64_t grams = (p.begins[at] - p.begins[at - 1]) / length;
    Dims none = {Dim(0), Dim(0)};
    Value absent = ops::scalar_i64(g, DType::I64, p.absent);
    Value padded = ops::pad(g, x, none, {Dim(0), Dim((length - 1) * distance)}, absent, "constant");
    Value windows = ops::window(g, padded, Window{{1}, {length}, {1}, {distance}});
    std::vector<int64_t> tokens(p.tokens.begin() + p.begins[at - 1],
                                p.tokens.begin() + p.begins[at]);
    Value pool = ops::reshape(g, ops::i64_list(g, tokens), {Dim(grams), Dim(length)});
    Value equal = ops::equal(g, ops::unsqueeze(g, windows, {2}), pool);
    Value found = ops::reduce(g, "min", equal, {3});
    return ops::reduce_sum(g, ops::cast(g, found, DType::F32), {1});
}

struct Lengths {
    int64_t shortest;
    int64_t longest;
    int64_t skips;
};

Lengths read_lengths(NodeContext& c, const Pool& p) {
    Lengths l{c.i("min_gram_length"), c.i("max_gram_length"), c.i("max_skip_count")};
    auto known = static_cast<int64_t>(p.begins.size()) - 1;
    c.ensure(l.shortest >= 1 && l.longest >= l.shortest && l.longest <= known,
             "the lengths of n-grams are ", l.shortest, " to ", l.longest, ", the pool has 1 to ",
             known);
    c.ensure(l.skips >= 0 && l.skips <= 1000, "attribute 'max_skip_count' is ", l.skips);
    return l;
}

// f32 [rows, n-grams of all requested lengths]; `indexes` gets the output index of each.
Value count_all(NodeContext& c, Value x, std::vector<int64_t>& indexes,
                std::vector<double>& weights) {
    Pool p = read_pool(c);
    Lengths l = read_lengths(c, p);
    std::vector<int64_t> all = c.ints("ngram_indexes");
    std::vector<double> all_weights = c.floats("weights");
    c.ensure(all_weights.empty() || all_weights.size() == all.size(), "attribute 'weights' has ",
             all_weights.size(), " elements, expected ", all.size());
    Values parts;
    size_t first = 0; // among all n-grams of the pool
    for (int64_t length = 1; length <= l.longest; ++length) {
        auto at = static_cast<size_t>(length);
        auto grams = static_cast<size_t>((p.begins[at] - p.begins[at - 1]) / length);
        c.ensure(first + grams <= all.size(), "attribute 'ngram_indexes' has ", all.size(),
                 " elements, the pool has more n-grams");
        if (length >= l.shortest && grams != 0) {
            Value sum = occurrences(c.g, x, p, length, 1);
            for (int64_t skip = 1; length > 1 && skip <= l.skips; ++skip) {
                sum = ops::add(c.g, sum, occurrences(c.g, x, p, length, skip + 1));
            }
            parts.push_back(sum);
            for (size_t i = first; i < first + grams; ++i) {
                indexes.push_back(all[i]);
                weights.push_back(all_weights.empty() ? 1.0 : all_weights[i]);
            }
        }
        first += grams;
    }
    return parts.empty() ? ops::full(c.g, DType::F32, {ops::dims(c.g, x)[0], Dim(0)}, 0)
                         : ops::concat(c.g, parts, 1);
}

Values tf_idf(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string mode = c.s("mode", "");
    c.ensure(mode == "TF" || mode == "IDF" || mode == "TFIDF", "attribute 'mode' is '", mode,
             "', expected TF, IDF or TFIDF");
    c.ensure(c.rank(0) == 1 || c.rank(0) == 2, "input 0 is ", c.type(0),
             ", expected [C] or [N, C]");
    int64_t columns = 0;
    for (int64_t i : c.ints("ngram_indexes")) {
        c.ensure(i >= 0 && i < (1LL << 31), "attribute 'ngram_indexes' has ", i);
        columns = std::max(columns, i + 1);
    }
    Value x = to_i64(g, c.in(0));
    x = c.rank(0) == 1 ? ops::unsqueeze(g, x, {0}) : x;
    std::vector<int64_t> indexes;
    std::vector<double> weights;
    Value counts = count_all(c, x, indexes, weights);
    counts = mode == "IDF" ? ops::minimum(g, counts, 1.0) : counts;
    if (mode != "TF") {
        Shape shape = {static_cast<int64_t>(weights.size())};
        Value w = ops::constant(g, ingot::Tensor::of<double>(DType::F32, shape, weights));
        counts = ops::mul(g, counts, w);
    }
    const Dim rows_count = ops::dims(g, x)[0];
    Value zeros = ops::full(g, DType::F32, {Dim(columns), rows_count}, 0);
    Value y =
        ops::scatter(g, zeros, ops::i64_list(g, indexes), ops::permute(g, counts, {1, 0}), "add");
    y = ops::permute(g, y, {1, 0});
    return {c.rank(0) == 1 ? ops::squeeze(g, y, {0}) : y};
}

const ImporterRow rows[] = {
    {"", "TfIdfVectorizer", 9, tf_idf, no_shapes},
};

} // namespace

extern const ImporterTable text_importers;
const ImporterTable text_importers = rows;

} // namespace ingot::onnx
