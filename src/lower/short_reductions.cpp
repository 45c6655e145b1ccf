// SPDX-License-Identifier: Apache-2.0
// short_reductions: a reduction over two to four elements becomes a map of as many slices, which
// may be part of other kernels, and reads whole vectors. (Measured: 14 us for the sum of two halves
// of 64 channels of 56 x 56, by a kernel whose threads walk the axis.)
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "lower/map_builder.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr int64_t most_elements = 4;

/// The function of two elements; nullopt for integers, whose sums wrap elsewhere.
std::optional<ExprOp> step_of(const Graph& g, const Node& n) {
    const std::string& fn = n.as<Reduce>().fn;
    if (!is_float(g.type(n.inputs[0]).dtype) || bit_width(g.type(n.inputs[0]).dtype) < 16) {
        return std::nullopt;
    }
    return fn == "sum"    ? std::optional(ExprOp::Add)
           : fn == "prod" ? std::optional(ExprOp::Mul)
           : fn == "max"  ? std::optional(ExprOp::Max)
           : fn == "min"  ? std::optional(ExprOp::Min)
                          : std::nullopt;
}

class Shortener {
public:
    explicit Shortener(const Graph& g) : g_(g), uses_(use_counts(g)) {}

    std::optional<Values> operator()(Rewriter& r, const Node& n) const {
        std::optional<ExprOp> step = n.is(reduce_def) ? step_of(g_, n) : std::nullopt;
        if (!step || n.as<Reduce>().axes.size() != 1) {
            return std::nullopt;
        }
        int64_t axis = n.as<Reduce>().axes[0];
        const Type& x = g_.type(n.inputs[0]);
        std::optional<int64_t> count = x.dims[static_cast<size_t>(axis)].as_const();
        if (!count || *count < 2 || *count > most_elements) {
            return std::nullopt;
        }
        MapBuilder map{r.out(), {}, {}};
        int all = 0;
        for (int64_t i = 0; i < *count; ++i) {
            int one = element(r, map, n.inputs[0], axis, i);
            all = i == 0 ? one : map.body.op(*step, all, one);
        }
        DType type = g_.type(n.outputs[0]).dtype;
        return Values{ops::map(r.out(), map.body, type, map.inputs)};
    }

private:
    /// The instruction of an old value's i-th element along an axis.
    int element(Rewriter& r, MapBuilder& map, Value v, int64_t axis, int64_t i) const {
        const Node* p = g_.producer(v);
        if (p == nullptr || !p->is(map_def) || uses_[v.id] != 1) {
            return map.input(element_of(r, v, axis, i));
        }
        std::vector<int> operands;
        int rank = g_.type(v).rank();
        for (Value x : p->inputs) {
            int64_t own = axis - (rank - g_.type(x).rank());
            operands.push_back(own < 0 ? map.input(r.mapped(x)) : element(r, map, x, own, i));
        }
        return map.inline_map(p->as<Map>(), operands);
    }

    /// The i-th element along an axis, or the only one, without that axis.
    Value element_of(Rewriter& r, Value v, int64_t axis, int64_t i) const {
        Graph& g = r.out();
        Dims dims = g_.type(v).dims;
        auto at = static_cast<size_t>(axis);
        const Node* p = g_.producer(v);
        auto is_one = [&](Value x) { return g_.type(x).dims[at].is_const(1); };
        bool parts = p != nullptr && p->is(concat_def) && p->as<Concat>().axis == axis &&
                     std::all_of(p->inputs.begin(), p->inputs.end(), is_one);
        Value one = is_one(v) ? r.mapped(v)
                    : parts   ? r.mapped(p->inputs[static_cast<size_t>(i)])
                              : ops::slice(g, r.mapped(v), axis, i, 1);
        dims.erase(dims.begin() + axis);
        return ops::reshape(g, one, dims);
    }

    const Graph& g_;
    std::vector<uint32_t> uses_;
};

} // namespace

Pass short_reductions(const KernelSet&) {
    return {
        .name = "short_reductions",
        .summary = "reductions over a few elements become maps of slices",
        .run =
            [](const Graph& g, const PassOptions&) {
                Shortener shorten(g);
                return dead_code(rewrite(g, [&](Rewriter& r, const Node& n,
                                                std::span<const Value>) { return shorten(r, n); }));
            },
    };
}

} // namespace ingot::plan
