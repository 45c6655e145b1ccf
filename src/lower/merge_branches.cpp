// SPDX-License-Identifier: Apache-2.0
// merge_branches: convolutions of one input whose results are added become one, whose weights are
// the sum of theirs: models that are trained with parallel branches (RepVGG, MobileOne) run as they
// do when their authors merge these by hand. Sums are rounded once: closer, but not the same.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "passes/match.h"

#include <algorithm>

namespace ingot::plan {

namespace {

/// A convolution with constant weights and paddings.
struct Branch {
    const Node* conv = nullptr;
    Tensor weights;
    std::vector<int64_t> low, high;

    const ops::Conv& attrs() const { return conv->as<ops::Conv>(); }
    size_t axes() const { return low.size(); }
    int64_t taps(size_t axis) const { return weights.shape()[axis + 2]; }
    int64_t taps() const { return weights.count() / (weights.shape()[0] * weights.shape()[1]); }
};

/// The operands of a tree of additions, from left to right.
struct Terms {
    std::vector<Branch> branches;
    std::vector<Tensor> biases; // [results, 1, ...] or a number
    Values others;
};

/// One window in which those of all branches lie.
struct Window {
    std::vector<int64_t> taps, dilations, low, high;
};

bool is_wide_float(DType t) {
    return t == DType::F16 || t == DType::BF16 || t == DType::F32;
}

/// Whether the node adds two values and rounds to `dtype`.
bool adds(const Node& n, DType dtype) {
    return passes::is_addition(n) && n.as<Map>().dtype == dtype;
}

std::optional<Branch> branch_of(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_def) ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || !is_wide_float(w->dtype()) || w->count() == 0) {
        return std::nullopt;
    }
    Branch b{&n, *w, {}, {}};
    const auto& a = n.as<ops::Conv>();
    for (size_t i = 0; i < a.low.size(); ++i) {
        std::optional<int64_t> low = a.low[i].as_const();
        std::optional<int64_t> high = a.high[i].as_const();
        if (!low || !high) {
            return std::nullopt;
        }
        b.low.push_back(*low);
        b.high.push_back(*high);
    }
    return b;
}

bool are_alike(const Graph& g, const Branch& a, const Branch& b) {
    const ops::Conv& x = a.attrs();
    const ops::Conv& y = b.attrs();
    return a.conv->inputs[0] == b.conv->inputs[0] && x.strides == y.strides &&
           x.groups == y.groups && x.dtype == y.dtype && a.weights.dtype() == b.weights.dtype() &&
           g.type(a.conv->outputs[0]).dims == g.type(b.conv->outputs[0]).dims;
}

std::optional<Window> window_of(const std::vector<Branch>& all) {
    Window w;
    for (size_t axis = 0; axis < all[0].axes(); ++axis) {
        int64_t low = all[0].low[axis];
        int64_t dilation = 0; // of windows of more than one element
        for (const Branch& b : all) {
            low = std::max(low, b.low[axis]);
            int64_t own = b.taps(axis) > 1 ? b.attrs().dilations[axis] : dilation;
            if (dilation != 0 && own != dilation) {
                return std::nullopt;
            }
            dilation = own;
        }
        dilation = std::max<int64_t>(dilation, 1);
        int64_t taps = 0;
        for (const Branch& b : all) {
            if ((low - b.low[axis]) % dilation != 0) {
                return std::nullopt;
            }
            taps = std::max(taps, (low - b.low[axis]) / dilation + b.taps(axis));
        }
        // As many results as the first branch has.
        const Branch& first = all[0];
        int64_t own_reach = first.attrs().dilations[axis] * (first.taps(axis) - 1);
        int64_t high = first.low[axis] + first.high[axis] - own_reach - low + dilation * (taps - 1);
        if (high < 0) {
            return std::nullopt;
        }
        w.taps.push_back(taps);
        w.dilations.push_back(dilation);
        w.low.push_back(low);
        w.high.push_back(high);
    }
    return w;
}

/// Whether one window does no more than all of them: a cross of two bars would.
bool pays(const std::vector<Branch>& all, const Window& w) {
    int64_t sum = 0;
    for (const Branch& b : all) {
        sum += b.taps();
    }
    int64_t taps = 1;
    for (int64_t t : w.taps) {
        taps *= t;
    }
    return taps <= sum;
}

/// Adds a branch's weights of one result where they lie in the window; `sum` is [channels, taps].
void add_weights(std::vector<double>& sum, const Branch& b, const Window& w, int64_t result) {
    int64_t whole = 1;
    for (int64_t t : w.taps) {
        whole *= t;
    }
    int64_t own = b.taps();
    int64_t count = b.weights.shape()[1] * own;
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i % own;
        int64_t at = 0;
        int64_t step = 1;
        for (size_t axis = b.axes(); axis-- > 0;) {
            int64_t tap = rest % b.taps(axis) + (w.low[axis] - b.low[axis]) / w.dilations[axis];
            rest /= b.taps(axis);
            at += tap * step;
            step *= w.taps[axis];
        }
        sum[static_cast<size_t>(i / own * whole + at)] += b.weights.get_f64(result * count + i);
    }
}

Tensor sum_of(const std::vector<Branch>& all, const Window& w, const Shape& shape) {
    Tensor out = Tensor::empty(all[0].weights.dtype(), shape);
    int64_t of_result = out.count() / shape[0];
    std::vector<double> sum(static_cast<size_t>(of_result));
    for (int64_t result = 0; result < shape[0]; ++result) {
        std::fill(sum.begin(), sum.end(), 0);
        for (const Branch& b : all) {
            add_weights(sum, b, w, result);
        }
        for (int64_t i = 0; i < of_result; ++i) {
            out.set_f64(result * of_result + i, sum[static_cast<size_t>(i)]);
        }
    }
    return out;
}

/// Those of one shape as one, in f32.
std::vector<Tensor> summed(const std::vector<Tensor>& biases) {
    std::vector<Tensor> out;
    for (const Tensor& b : biases) {
        auto it = std::find_if(out.begin(), out.end(),
                               [&b](const Tensor& t) { return t.shape() == b.shape(); });
        if (it == out.end()) {
            it = out.insert(it, Tensor::zeros(DType::F32, b.shape()));
        }
        for (int64_t i = 0; i < b.count(); ++i) {
            it->set_f64(i, it->get_f64(i) + b.get_f64(i));
        }
    }
    return out;
}

class Merger {
public:
    explicit Merger(const Graph& g) : g_(g), uses_(use_counts(g)) {}

    std::optional<Values> merge(Rewriter& r, const Node& n) const {
        if (!passes::is_addition(n) || !is_wide_float(n.as<Map>().dtype)) {
            return std::nullopt;
        }
        Terms terms;
        collect(n, terms);
        std::vector<std::vector<Branch>> sets = sets_of(terms.branches);
        if (sets.size() == terms.branches.size()) {
            return std::nullopt;
        }
        return Values{sum(r, n, terms, sets)};
    }

private:
    void collect(const Node& n, Terms& terms) const {
        for (Value v : n.inputs) {
            const Node* p = g_.producer(v);
            const Tensor* constant = g_.constant(v);
            if (constant != nullptr) {
                terms.biases.push_back(*constant);
                continue;
            }
            bool inside = p != nullptr && uses_[v.id] == 1 && g_.type(v).dims == dims_of(n);
            if (inside && adds(*p, n.as<Map>().dtype)) {
                collect(*p, terms);
                continue;
            }
            std::optional<Branch> b = inside ? branch_of(g_, *p) : std::nullopt;
            if (b) {
                terms.branches.push_back(std::move(*b));
            } else {
                terms.others.push_back(v);
            }
        }
    }

    const Dims& dims_of(const Node& n) const { return g_.type(n.outputs[0]).dims; }

    /// Branches that become one, in the order of the first of each set.
    std::vector<std::vector<Branch>> sets_of(const std::vector<Branch>& branches) const {
        std::vector<std::vector<Branch>> sets;
        for (const Branch& b : branches) {
            auto joins = [&](const std::vector<Branch>& set) {
                std::vector<Branch> with = set;
                with.push_back(b);
                std::optional<Window> w = are_alike(g_, set[0], b) ? window_of(with) : std::nullopt;
                return w && pays(with, *w);
            };
            auto it = std::find_if(sets.begin(), sets.end(), joins);
            if (it == sets.end()) {
                sets.push_back({b});
            } else {
                it->push_back(b);
            }
        }
        return sets;
    }

    Value convolution(Rewriter& r, const std::vector<Branch>& set) const {
        if (set.size() == 1) {
            return r.mapped(set[0].conv->outputs[0]);
        }
        Window w = *window_of(set);
        ops::Conv a = set[0].attrs();
        a.dilations = w.dilations;
        a.low.assign(w.low.begin(), w.low.end());
        a.high.assign(w.high.begin(), w.high.end());
        Shape shape = set[0].weights.shape();
        std::copy(w.taps.begin(), w.taps.end(), shape.begin() + 2);
        Tensor weights = Tensor::lazy(set[0].weights.dtype(), shape, [set, w, shape](ThreadPool&) {
            return sum_of(set, w, shape);
        });
        return ops::conv(r.out(), a, r.mapped(set[0].conv->inputs[0]),
                         ops::constant(r.out(), std::move(weights)));
    }

    Value sum(Rewriter& r, const Node& n, const Terms& terms,
              const std::vector<std::vector<Branch>>& sets) const {
        Graph& g = r.out();
        Values all;
        for (const auto& set : sets) {
            all.push_back(convolution(r, set));
        }
        for (const Tensor& t : summed(terms.biases)) {
            all.push_back(ops::constant(g, t));
        }
        Values others = r.mapped(terms.others);
        all.insert(all.end(), others.begin(), others.end());
        DType type = n.as<Map>().dtype;
        if (all.size() == 1 && g.type(all[0]).dtype == type) {
            return all[0];
        }
        Expr e;
        int sum = e.in(0, DType::F32);
        for (size_t i = 1; i < all.size(); ++i) {
            sum = e.op(ExprOp::Add, sum, e.in(static_cast<int>(i), DType::F32));
        }
        return ops::map(g, e, type, all);
    }

    const Graph& g_;
    std::vector<uint32_t> uses_;
};

} // namespace

Pass merge_branches(const KernelSet&) {
    return {
        .name = "merge_branches",
        .summary = "convolutions of one input whose results are added become one",
        .run =
            [](const Graph& g, const PassOptions&) {
                Merger merger(g);
                return dead_code(
                    rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value>) {
                        return merger.merge(r, n);
                    }));
            },
    };
}

} // namespace ingot::plan
