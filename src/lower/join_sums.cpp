// SPDX-License-Identifier: Apache-2.0
// join_sums: the sum of two pointwise convolutions, as where a residual block projects its
// shortcut, becomes one convolution of both inputs side by side. Neither of two results is written
// and read again. Their biases become one. Sums of both are rounded once: closer, but not the same.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "passes/match.h"

#include <algorithm>
#include <cstring>

namespace ingot::plan {

namespace {

/// Channels in aligned vectors of 16 bits, when another tensor's come before them.
constexpr int64_t vector = 8;

/// A convolution and the constant that a map adds to it, if one does.
struct Branch {
    const Node* conv = nullptr;
    const Tensor* weights = nullptr;
    const Tensor* bias = nullptr; // [results, 1, ...]

    int64_t channels() const { return weights->shape()[1]; }
    int64_t results() const { return weights->shape()[0]; }
};

bool are_all(const std::vector<int64_t>& v, int64_t x) {
    return std::all_of(v.begin(), v.end(), [x](int64_t e) { return e == x; });
}

bool are_zeros(const Dims& v) {
    return std::all_of(v.begin(), v.end(), [](const Dim& d) { return d.is_const(0); });
}

bool is_pointwise(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_def) ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || !is_float(w->dtype()) || bit_width(w->dtype()) < 16 ||
        bit_width(w->dtype()) > 32 || w->count() != w->shape()[0] * w->shape()[1]) {
        return false;
    }
    const auto& a = n.as<ops::Conv>();
    return a.groups == 1 && are_all(a.strides, 1) && are_zeros(a.low) && are_zeros(a.high) &&
           w->shape()[1] % vector == 0;
}

class Joiner {
public:
    explicit Joiner(const Graph& g) : g_(g), uses_(use_counts(g)) {}

    std::optional<Values> join(Rewriter& r, const Node& n) const {
        if (!passes::is_addition(n)) {
            return std::nullopt;
        }
        Branch a = branch(n.inputs[0]);
        Branch b = branch(n.inputs[1]);
        if (a.conv == nullptr || b.conv == nullptr || !fit(a, b)) {
            return std::nullopt;
        }
        Graph& out = r.out();
        const std::array inputs = {r.mapped(a.conv->inputs[0]), r.mapped(b.conv->inputs[0])};
        Value x = ops::concat(out, inputs, 1);
        Value w = ops::constant(out, side_by_side(*a.weights, *b.weights));
        Value y = ops::conv(out, a.conv->as<ops::Conv>(), x, w);
        DType type = n.as<Map>().dtype;
        bool biased = a.bias != nullptr || b.bias != nullptr;
        if (!biased && out.type(y).dtype == type) {
            return Values{y};
        }
        Expr e;
        int sum = e.in(0, DType::F32);
        Values read = {y};
        if (biased) {
            read.push_back(ops::constant(out, sum_of_biases(a, b)));
            e.op(ExprOp::Add, sum, e.in(1, DType::F32));
        }
        return Values{ops::map(out, e, type, read)};
    }

private:
    /// The one that ends in a value with one use.
    Branch branch(Value v) const {
        Branch out;
        const Node* p = uses_[v.id] == 1 ? g_.producer(v) : nullptr;
        if (p != nullptr && passes::is_addition(*p)) {
            size_t constant = g_.constant(p->inputs[0]) != nullptr ? 0 : 1;
            out.bias = g_.constant(p->inputs[constant]);
            Value sums = p->inputs[1 - constant];
            p = out.bias != nullptr && uses_[sums.id] == 1 ? g_.producer(sums) : nullptr;
        }
        if (p != nullptr && is_pointwise(g_, *p)) {
            out.conv = p;
            out.weights = g_.constant(p->inputs[1]);
        }
        bool by_channel =
            out.bias == nullptr || out.conv == nullptr ||
            (out.bias->rank() == out.weights->rank() - 1 && is_half_or_single(*out.bias) &&
             out.bias->shape()[0] == out.results() && out.bias->count() == out.results());
        return by_channel ? out : Branch();
    }

    static bool is_half_or_single(const Tensor& t) {
        return t.dtype() == DType::F16 || t.dtype() == DType::BF16 || t.dtype() == DType::F32;
    }

    /// Whether there is one convolution of both, which moves fewer bytes even where both inputs
    /// have to be copied.
    bool fit(const Branch& a, const Branch& b) const {
        const Type& x = g_.type(a.conv->inputs[0]);
        const Type& y = g_.type(b.conv->inputs[0]);
        Dims wide = x.dims;
        wide[1] = y.dims[1];
        return x.dtype == y.dtype && wide == y.dims && a.weights->dtype() == b.weights->dtype() &&
               a.results() == b.results() && a.channels() + b.channels() <= a.results() &&
               a.conv->as<ops::Conv>().dtype == b.conv->as<ops::Conv>().dtype;
    }

    /// Weights [results, channels, 1 ...], with the channels of both.
    static Tensor side_by_side(const Tensor& a, const Tensor& b) {
        Shape shape = a.shape();
        shape[1] += b.shape()[1];
        Tensor out = Tensor::empty(a.dtype(), shape);
        std::byte* to = out.mutable_bytes().data();
        for (int64_t n = 0; n < shape[0]; ++n) {
            for (const Tensor* t : {&a, &b}) {
                size_t row = t->bytes().size() / static_cast<size_t>(shape[0]);
                std::memcpy(to, t->bytes().data() + static_cast<size_t>(n) * row, row);
                to += row;
            }
        }
        return out;
    }

    static Tensor sum_of_biases(const Branch& a, const Branch& b) {
        const Tensor& one = a.bias != nullptr ? *a.bias : *b.bias;
        Tensor out = Tensor::zeros(DType::F32, one.shape());
        for (const Branch* x : {&a, &b}) {
            for (int64_t i = 0; x->bias != nullptr && i < out.count(); ++i) {
                out.set_f64(i, out.get_f64(i) + x->bias->get_f64(i));
            }
        }
        return out;
    }

    const Graph& g_;
    std::vector<uint32_t> uses_;
};

} // namespace

Pass join_sums(const KernelSet&) {
    return {
        .name = "join_sums",
        .summary = "the sum of two pointwise convolutions becomes one of both inputs",
        .run =
            [](const Graph& g, const PassOptions&) {
                Joiner joiner(g);
                return dead_code(
                    rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value>) {
                        return joiner.join(r, n);
                    }));
            },
    };
}

} // namespace ingot::plan
