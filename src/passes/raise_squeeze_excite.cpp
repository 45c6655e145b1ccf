// SPDX-License-Identifier: Apache-2.0
// raise_squeeze_excite: x times a gate, which two layers (1x1 convolutions or products, each with
// or without a bias) compute from the means of x's channels, where no other node reads the values
// between.
#include "ops/squeeze_excite.h"
#include "passes/passes.h"
#include "passes/raise.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace ingot::passes {

namespace {

constexpr int most_terms = 64; // per function
constexpr size_t most_values = 48;

/// Whether both are [N,C], perhaps with axes of size 1 behind.
bool same_channels(const Dims& a, const Dims& b) {
    auto rest = [](const Dims& d) {
        return std::all_of(d.begin() + 2, d.end(), [](const Dim& n) { return n.is_const(1); });
    };
    return a.size() >= 2 && b.size() >= 2 && a[0] == b[0] && a[1] == b[1] && rest(a) && rest(b);
}

/// Looks past reshapes that add or remove axes of size 1 behind [N,C].
Term past_reshapes(const View& v, Term t) {
    for (;;) {
        const Node* n = v.node(t, reshape_def);
        if (n == nullptr ||
            !same_channels(v.graph().type(n->inputs[0]).dims, v.graph().type(t.value).dims)) {
            return t;
        }
        t = v.term(n->inputs[0]);
    }
}

/// A 1x1 convolution, or a product, of [N,C(,1...)] with constant weights.
bool is_pixel_conv(const Graph& g, const Node& n) {
    const auto& a = n.as<ops::Conv>();
    const Dims& w = g.type(n.inputs[1]).dims;
    auto all = [](const Dims& d, int64_t k, size_t from) {
        return std::all_of(d.begin() + static_cast<int64_t>(from), d.end(),
                           [k](const Dim& x) { return x.is_const(k); });
    };
    return a.groups == 1 && all(w, 1, 2) && all(a.low, 0, 0) && all(a.high, 0, 0);
}

bool is_row_product(const Graph& g, const Node& n) {
    const auto& d = n.as<Dot>();
    return d.a_batch.empty() && g.type(n.inputs[0]).rank() == 2 &&
           g.type(n.inputs[1]).rank() == 2 && d.a_contract == std::vector<int64_t>{1} &&
           d.b_contract.size() == 1;
}

const Node* product_of(const View& v, Term t) {
    const Graph& g = v.graph();
    const Node* n = v.node(t, ops::conv_def);
    bool fits = n != nullptr && is_pixel_conv(g, *n);
    if (n == nullptr) {
        n = v.node(t, dot_def);
        fits = n != nullptr && is_row_product(g, *n);
    }
    fits = fits && g.constant(n->inputs[1]) != nullptr &&
           g.type(n->inputs[1]).dtype == g.type(n->inputs[0]).dtype &&
           g.type(n->outputs[0]).dtype == g.type(n->inputs[0]).dtype;
    return fits ? n : nullptr;
}

/// Whether axis 1 of the operand is axis 1 of the map that computes `of`: a value of lower rank
/// meets the last axes.
bool is_aligned(const View& v, Term of, Term operand) {
    auto rank = [&v](Term t) { return v.graph().type(t.value).rank(); };
    return v.number(operand).has_value() || rank(of) == rank(operand);
}

/// Whether `b` has one number per channel of a product's result.
bool is_bias(const Graph& g, Value b, const Type& result) {
    const Type& t = g.type(b);
    size_t behind = result.dims.size() - 1; // axes from the channels on
    if (g.constant(b) == nullptr || t.dtype != result.dtype || t.dims.size() < behind) {
        return false;
    }
    Dims ones(t.dims.size(), 1);
    ones[t.dims.size() - behind] = result.dims[1];
    return t.dims == ones;
}

/// A function of (w x + b), read backwards from its result.
class Layer {
public:
    Layer(const View& v, Term result) : v_(v) {
        matches_ = instruction(result) >= 0 && found_ != nullptr;
        product_ = matches_ ? *found_ : Node{}; // nodes move while others are added
    }

    bool matches() const { return matches_; }
    const Node& product() const { return product_; }
    const Expr& function() const { return function_; }
    Term input() const { return past_reshapes(v_, v_.term(product_.inputs[0])); }
    DType dtype() const { return v_.graph().type(product_.outputs[0]).dtype; }
    std::optional<Value> bias() const { return bias_; }

private:
    struct Sum {
        const Node* product = nullptr;
        std::optional<Value> bias;
    };

    std::optional<Sum> sum_of(Term t) const {
        if (const Node* n = product_of(v_, past_reshapes(v_, t))) {
            return Sum{n, std::nullopt};
        }
        if (!v_.is(t, ExprOp::Add)) {
            return std::nullopt;
        }
        for (int k : {0, 1}) {
            const Node* n =
                is_aligned(v_, t, v_.arg(t, k)) ? product_of(v_, v_.arg(t, k)) : nullptr;
            auto b = v_.leaf(v_.arg(t, 1 - k));
            if (n != nullptr && b && is_bias(v_.graph(), *b, v_.graph().type(n->outputs[0]))) {
                return Sum{n, b};
            }
        }
        return std::nullopt;
    }

    /// The index of the instruction that computes the term; negative for other terms.
    int instruction(Term t) {
        t = past_reshapes(v_, t);
        if (++terms_ > most_terms) {
            return -1;
        }
        if (auto s = sum_of(t)) {
            bool other = found_ != nullptr && (found_ != s->product || bias_ != s->bias);
            found_ = s->product;
            bias_ = s->bias;
            return other ? -1 : function_.in(0, DType::F32);
        }
        if (auto n = v_.number(t)) {
            return function_.constant(DType::F32, *n);
        }
        ExprOp op = v_.op(t);
        ExprKind k = kind(op);
        if (k != ExprKind::Arith && k != ExprKind::Float) {
            return -1;
        }
        int a = operand(t, 0);
        int b = arity(op) == 2 && a >= 0 ? operand(t, 1) : -1;
        bool known = a >= 0 && (b >= 0) == (arity(op) == 2);
        return known ? function_.op(op, a, b) : -1;
    }

    int operand(Term t, int k) {
        Term a = v_.arg(t, k);
        return is_aligned(v_, t, a) ? instruction(a) : -1;
    }

    const View& v_;
    Expr function_;
    const Node* found_ = nullptr;
    Node product_;
    std::optional<Value> bias_;
    int terms_ = 0;
    bool matches_ = false;
};

std::vector<int64_t> spatial_axes(const Dims& d) {
    std::vector<int64_t> axes;
    for (size_t i = 2; i < d.size(); ++i) {
        axes.push_back(static_cast<int64_t>(i));
    }
    return axes;
}

/// The value whose means over all spatial axes the term is, as [N,C,1...] or [N,C].
std::optional<Value> means_of(const View& v, Term t) {
    const Graph& g = v.graph();
    if (auto r = mean(v, t)) {
        return r->axes == spatial_axes(g.type(r->x).dims) ? std::optional(r->x) : std::nullopt;
    }
    Product p = v.product(t);
    if (p.num.size() != 1 || !p.den.empty()) {
        return std::nullopt;
    }
    const Node* n = v.node(past_reshapes(v, p.num[0]), reduce_def);
    if (n == nullptr || n->as<Reduce>().fn != "sum") {
        return std::nullopt;
    }
    const Dims& d = g.type(n->inputs[0]).dims;
    double scale = p.scale;
    for (size_t i = 2; i < d.size(); ++i) {
        scale *= d[i].is_const() ? static_cast<double>(d[i].value()) : 0;
    }
    bool fits = d.size() > 2 && n->as<Reduce>().axes == spatial_axes(d) && nearly(scale, 1, 1e-5);
    return fits ? std::optional(n->inputs[0]) : std::nullopt;
}

/// Whether no other node reads the values between x and the node.
bool is_apart(const Site& s, Value x, const Node& root) {
    const Graph& g = s.g_const();
    std::map<Value, uint32_t> reads; // in execution order
    Values open(root.inputs);
    while (!open.empty()) {
        Value v = open.back();
        open.pop_back();
        const Node* n = g.producer(v);
        if (++reads[v] == 1 && v != x && n != nullptr) {
            open.insert(open.end(), n->inputs.begin(), n->inputs.end());
        }
        if (reads.size() > most_values) {
            return false;
        }
    }
    std::set<Value> from_x{x};
    for (const auto& [v, count] : reads) {
        const Node* n = g.producer(v);
        if (v == x || n == nullptr ||
            std::none_of(n->inputs.begin(), n->inputs.end(),
                         [&from_x](Value i) { return from_x.count(i) > 0; })) {
            continue;
        }
        from_x.insert(v);
        if (s.uses(v) > count) {
            return false;
        }
    }
    return true;
}

/// Weights as [results, operands].
Value matrix(Graph& g, const Node& product) {
    Value w = product.inputs[1];
    if (product.is(dot_def)) {
        return product.as<Dot>().b_contract[0] == 1 ? w : ops::permute(g, w, {1, 0});
    }
    const Dims d = g.type(w).dims;
    return ops::reshape(g, w, {d[0], d[1]});
}

Value bias(Graph& g, const Layer& l, Value w) {
    const Type t = g.type(w);
    if (l.bias()) {
        return ops::reshape(g, *l.bias(), {t.dims[0]});
    }
    return ops::constant(g, Tensor::zeros(t.dtype, {t.dims[0].value()}));
}

/// Whether the layers take x's channels and give as many.
bool fits(const Graph& g, const Layer& act, const Layer& gate, const Dim& channels) {
    auto sizes = [&g](const Node& product) { // results and operands
        const Dims& w = g.type(product.inputs[1]).dims;
        size_t depth =
            product.is(dot_def) ? static_cast<size_t>(product.as<Dot>().b_contract[0]) : 1;
        return std::pair(w[1 - depth], w[depth]);
    };
    auto [middle, first] = sizes(act.product());
    auto [last, inner] = sizes(gate.product());
    return first == channels && inner == middle && last == channels;
}

std::optional<Values> raised(Site& s, const View& v, Term root, int k) {
    Term x = v.arg(root, k);
    Term scale = v.arg(root, 1 - k);
    auto value = v.value(x);
    Type out = s.result();
    if (!value || s.g().type(*value) != out || out.rank() < 3 || !is_aligned(v, root, scale)) {
        return std::nullopt;
    }
    Layer gate(v, scale);
    if (!gate.matches()) {
        return std::nullopt;
    }
    Layer act(v, gate.input());
    if (!act.matches() || act.dtype() != out.dtype || gate.dtype() != out.dtype ||
        !fits(s.g(), act, gate, out.dims[1])) {
        return std::nullopt;
    }
    auto from = means_of(v, act.input());
    const Node* result = s.g().producer(s.copied()[0]);
    if (!from || !v.same(v.term(*from), x) || !is_apart(s, *value, *result)) {
        return std::nullopt;
    }
    ops::SqueezeExcite a{act.function(), gate.function()};
    Value w1 = matrix(s.g(), act.product());
    Value b1 = bias(s.g(), act, w1);
    Value w2 = matrix(s.g(), gate.product());
    Value b2 = bias(s.g(), gate, w2);
    return Values{ops::squeeze_excite(s.g(), std::move(a), std::array{*value, w1, b1, w2, b2})};
}

std::optional<Values> raise(Site& s) {
    DType t = s.result().dtype;
    if (t != DType::F32 && t != DType::F16 && t != DType::BF16) {
        return std::nullopt;
    }
    View v(s.g());
    Term root = v.term(s.copied()[0]);
    if (!v.is(root, ExprOp::Mul)) {
        return std::nullopt;
    }
    for (int k : {0, 1}) {
        if (auto by = raised(s, v, root, k)) {
            return by;
        }
    }
    return std::nullopt;
}

} // namespace

const Pass raise_squeeze_excite = {
    .name = "raise_squeeze_excite",
    .summary = "recognise squeeze-and-excite",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, raise}};
            return apply_rules(g, Rules(rows), {&ops::conv_def, &dot_def});
        },
};

} // namespace ingot::passes
