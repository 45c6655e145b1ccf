// SPDX-License-Identifier: Apache-2.0
// dense_experts: rows of activations by matrices that a router gathers for them become one product
// of all rows with all matrices, whose results are gathered instead. A matrix is read once, not
// copied for each row that picks it, and tensor cores multiply far more than memory can copy.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "passes/index_range.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

/// Bytes of the dense form by those of the gathered one, at most.
constexpr double most_of_bytes = 0.7;

/// Row b of `rows` by matrix indices[b] of `experts`.
struct Routed {
    Value experts; // [E, ., .]
    int64_t contracted = 1;
    Value indices; // [B], each below E
    Value rows;    // [B, depth], but for axes of one element
    int64_t results = 0, count = 0, depth = 0;
};

/// The rows before each was repeated, one for each matrix that it goes to.
struct Tokens {
    Value value;
    int64_t count = 0, repeats = 1;
};

std::optional<Routed> routed(const Graph& g, const Node& n) {
    const auto& d = n.as<Dot>();
    auto one = [](const std::vector<int64_t>& axes) { return axes.size() == 1; };
    if (!one(d.a_batch) || !one(d.b_batch) || !one(d.a_contract) || !one(d.b_contract)) {
        return std::nullopt;
    }
    for (size_t side = 0; side < 2; ++side) {
        const Node* gather = g.producer(n.inputs[side]);
        if (gather == nullptr || !gather->is(gather_def) || gather->as<Gather>().axis != 0) {
            continue;
        }
        const Tensor* table = g.constant(gather->inputs[0]);
        std::optional<int64_t> count = g.type(gather->inputs[1]).rank() == 1
                                           ? g.type(gather->inputs[1]).dims[0].as_const()
                                           : std::nullopt;
        bool first = (side == 0 ? d.a_batch : d.b_batch)[0] == 0;
        if (table == nullptr || table->rank() != 3 || !count || !first) {
            continue;
        }
        Routed r{gather->inputs[0], (side == 0 ? d.a_contract : d.b_contract)[0], gather->inputs[1],
                 n.inputs[1 - side]};
        r.count = *count;
        r.depth = table->shape()[static_cast<size_t>(r.contracted)];
        r.results = table->shape()[static_cast<size_t>(3 - r.contracted)];
        Interval in = passes::value_range(g, r.indices);
        bool safe = in.low >= 0 && in.high < table->shape()[0];
        bool vectors =
            product(g.type(r.rows).dims) == Dim(r.count * r.depth) &&
            (side == 0 ? d.b_batch : d.a_batch)[0] < (side == 0 ? d.b_contract : d.a_contract)[0];
        if (safe && vectors) {
            return r;
        }
    }
    return std::nullopt;
}

Tokens tokens_of(const Graph& g, const Routed& r) {
    Value v = r.rows;
    const Node* n = g.producer(v);
    while (n != nullptr && n->is(reshape_def)) {
        v = n->inputs[0];
        n = g.producer(v);
    }
    if (n != nullptr && n->is(broadcast_def)) {
        const Dims& to = n->as<Broadcast>().dims;
        const Dims& from = g.type(n->inputs[0]).dims;
        if (to.size() == 3 && from.size() == 3 && from[0] == to[0] && from[1].is_const(1) &&
            from[2].is_const(r.depth) && to[0].is_const() && to[1].is_const()) {
            return {n->inputs[0], to[0].value(), to[1].value()};
        }
    }
    return {r.rows, r.count, 1};
}

bool pays(const Routed& r, const Tokens& t, int64_t experts) {
    auto size = [](int64_t a, int64_t b) {
        return static_cast<double>(a) * static_cast<double>(b);
    };
    double dense = size(experts, r.depth) + 2 * size(t.count, experts);
    double gathered = 3 * size(r.count, r.depth);
    return dense <= most_of_bytes * gathered;
}

std::optional<Values> multiply_all(Rewriter& r, const Node& n, std::span<const Value>) {
    std::optional<Routed> found = n.is(dot_def) ? routed(r.from(), n) : std::nullopt;
    if (!found) {
        return std::nullopt;
    }
    int64_t experts = r.from().type(found->experts).dims[0].value();
    Tokens tokens = tokens_of(r.from(), *found);
    if (!pays(*found, tokens, experts)) {
        return std::nullopt;
    }
    Graph& g = r.out();
    Value x = ops::reshape(g, r.mapped(tokens.value), {tokens.count, found->depth});
    Dot d{{}, {}, {1}, {found->contracted}, n.as<Dot>().dtype};
    Value all = ops::dot(g, d, x, r.mapped(found->experts)); // [tokens, experts, results]
    all = ops::reshape(g, all, {tokens.count * experts, found->results});
    Tensor first = Tensor::empty(DType::I64, {found->count});
    for (int64_t i = 0; i < found->count; ++i) {
        first.set_i64(i, i / tokens.repeats * experts);
    }
    Value at = ops::add(g, ops::cast(g, r.mapped(found->indices), DType::I64),
                        ops::constant(g, std::move(first)));
    Value picked = ops::gather(g, all, at, 0);
    return Values{ops::reshape(g, picked, r.from().type(n.outputs[0]).dims)};
}

} // namespace

Pass dense_experts(const KernelSet&) {
    return {
        .name = "dense_experts",
        .summary = "rows by matrices gathered for them become one product, and a gather of results",
        .run = [](const Graph& g,
                  const PassOptions&) { return dead_code(rewrite(g, multiply_all)); },
    };
}

} // namespace ingot::plan
