// SPDX-License-Identifier: Apache-2.0
// sum_products: the sum of a product whose factors are repeated along each other's axes (the scores
// of state-space models are written so) is a matrix product, and what is repeated is never made.
// It rounds no operand to TF32: where products of f32 do, it is exact, unless its numbers have
// fewer bits anyway.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

constexpr int64_t least_repeats = 4; // of each factor: others cost no more than reading them
constexpr int64_t least_summed = 4;
constexpr int longest_chain = 16;

/// Whether the map multiplies its two inputs and does nothing else.
bool is_product(const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 2) {
        return false;
    }
    const std::vector<ExprInstr>& code = n.as<Map>().body.code;
    return code.size() == 3 && code[0].op == ExprOp::In && code[1].op == ExprOp::In &&
           code[2].op == ExprOp::Mul && code[2].args[0] != code[2].args[1] &&
           code[0].args[0] != code[1].args[0];
}

/// Whether the elements of an f32 value are 16-bit floats, or 0.
bool holds_halves(const Graph& g, Value v, int depth = 0) {
    if (is_half(g.type(v).dtype)) {
        return true;
    }
    const Node* p = g.producer(v);
    if (p == nullptr || depth == longest_chain || g.type(v).dtype != DType::F32) {
        return false;
    }
    if (p->is(map_def)) {
        return p->inputs.size() == 1 && p->as<Map>().body.code.size() == 1 &&
               holds_halves(g, p->inputs[0], depth + 1);
    }
    bool padded = p->is(pad_def) && p->inputs.size() == 2 && g.constant(p->inputs[1]) != nullptr &&
                  g.constant(p->inputs[1])->get_f64(0) == 0;
    bool moves = p->is(reshape_def) || p->is(permute_def) || p->is(slice_def) ||
                 p->is(broadcast_def) || p->is(gather_def) || padded;
    bool all = p->is(concat_def) && std::all_of(p->inputs.begin(), p->inputs.end(), [&](Value x) {
                   return holds_halves(g, x, depth + 1);
               });
    return all || (moves && holds_halves(g, p->inputs[0], depth + 1));
}

/// Sizes of an operand along the axes of its map's result.
Dims aligned(const Graph& g, Value v, size_t rank) {
    Dims dims(rank - g.type(v).dims.size(), Dim(1));
    const Dims& own = g.type(v).dims;
    dims.insert(dims.end(), own.begin(), own.end());
    return dims;
}

/// An operand without the axes of size 1 along which it is repeated.
struct Factor {
    Dims dims;
    std::vector<int64_t> batch, summed;
    std::vector<int64_t> free; // axes of the map's result
    std::optional<int64_t> repeats = 1;

    int64_t add(const Dim& size) {
        dims.push_back(size);
        return static_cast<int64_t>(dims.size()) - 1;
    }
};

class Rule {
public:
    Rule(const Graph& g, bool rounds) : g_(g), rounds_(rounds), uses_(use_counts(g)) {}

    std::optional<Values> operator()(Rewriter& r, const Node& n) const {
        if (!n.is(reduce_def) || n.as<Reduce>().fn != "sum") {
            return std::nullopt;
        }
        const Node* product = g_.producer(n.inputs[0]);
        DType t = g_.type(n.inputs[0]).dtype;
        if (product == nullptr || !is_product(*product) || uses_[n.inputs[0].id] != 1 ||
            (t != DType::F32 && !is_half(t)) ||
            g_.type(product->inputs[0]).dtype != g_.type(product->inputs[1]).dtype) {
            return std::nullopt;
        }
        bool exact = rounds_ && !(holds_halves(g_, product->inputs[0]) &&
                                  holds_halves(g_, product->inputs[1]));
        return multiplied(r, n, *product, exact);
    }

private:
    std::optional<Values> multiplied(Rewriter& r, const Node& n, const Node& product,
                                     bool exact) const {
        const Dims& all = g_.type(n.inputs[0]).dims;
        const std::vector<int64_t>& axes = n.as<Reduce>().axes;
        std::array dims{aligned(g_, product.inputs[0], all.size()),
                        aligned(g_, product.inputs[1], all.size())};
        std::array<Factor, 2> factors;
        std::vector<int64_t> batch; // axes of the map's result
        std::optional<int64_t> summed = 1;
        for (size_t i = 0; i < all.size(); ++i) {
            auto axis = static_cast<int64_t>(i);
            bool one[] = {dims[0][i].is_const(1), dims[1][i].is_const(1)};
            bool sums = std::find(axes.begin(), axes.end(), axis) != axes.end();
            if (one[0] && one[1]) {
                continue;
            }
            if (sums && (one[0] || one[1])) {
                return std::nullopt;
            }
            if (!one[0] && !one[1]) {
                for (Factor& f : factors) {
                    (sums ? f.summed : f.batch).push_back(f.add(all[i]));
                }
                if (sums) {
                    summed = times(summed, all[i]);
                } else {
                    batch.push_back(axis);
                }
                continue;
            }
            size_t owner = one[0] ? 1 : 0;
            factors[owner].add(all[i]);
            factors[owner].free.push_back(axis);
            factors[1 - owner].repeats = times(factors[1 - owner].repeats, all[i]);
        }
        // Open sizes are taken for large ones.
        if (summed.value_or(least_summed) < least_summed ||
            factors[0].repeats.value_or(least_repeats) < least_repeats ||
            factors[1].repeats.value_or(least_repeats) < least_repeats) {
            return std::nullopt;
        }
        Graph& g = r.out();
        Value a = ops::reshape(g, r.mapped(product.inputs[0]), factors[0].dims);
        Value b = ops::reshape(g, r.mapped(product.inputs[1]), factors[1].dims);
        Value y = ops::dot(g,
                           Dot{factors[0].batch, factors[1].batch, factors[0].summed,
                               factors[1].summed, g_.type(n.outputs[0]).dtype, exact},
                           a, b);
        // Batch, then what each factor has alone; the sum has them in the axes' order.
        std::vector<int64_t> order = batch;
        for (const Factor& f : factors) {
            order.insert(order.end(), f.free.begin(), f.free.end());
        }
        std::vector<int64_t> perm(order.size());
        for (size_t i = 0; i < perm.size(); ++i) {
            perm[i] = static_cast<int64_t>(i);
        }
        std::sort(perm.begin(), perm.end(), [&order](int64_t x, int64_t z) {
            return order[static_cast<size_t>(x)] < order[static_cast<size_t>(z)];
        });
        return Values{ops::reshape(g, ops::permute(g, y, perm), g_.type(n.outputs[0]).dims)};
    }

    static std::optional<int64_t> times(std::optional<int64_t> n, const Dim& size) {
        return n && size.is_const() ? std::optional(*n * size.value()) : std::nullopt;
    }

    const Graph& g_;
    bool rounds_;
    std::vector<uint32_t> uses_;
};

} // namespace

Pass sum_products(const KernelSet&) {
    return {
        .name = "sum_products",
        .summary = "sums of products of repeated factors become matrix products",
        .run =
            [](const Graph& g, const PassOptions& o) {
                Rule rule(g, o.rounds_products);
                return dead_code(rewrite(g, [&](Rewriter& r, const Node& n,
                                                std::span<const Value>) { return rule(r, n); }));
            },
    };
}

} // namespace ingot::plan
