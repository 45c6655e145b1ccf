// SPDX-License-Identifier: Apache-2.0
// fold_scales: folds constant factors and offsets per output channel of a convolution or
// contraction (such as batch normalisation) into its weights and one added bias. Computed in f64,
// rounded once.
#include "passes/passes.h"
#include "passes/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ingot::passes {

namespace {

// y = scale * x + offset per channel.
struct Affine {
    std::vector<double> scale;
    std::vector<double> offset;
};

// Weights with scalable output channels: constant `weights`, operand `operand` of `node`. Seen as
// [groups, outer, n, inner], channel = group * n + index along n.
struct Producer {
    const Node* node = nullptr;
    size_t operand = 1;
    int64_t channel_axis = 1; // of the result
    int64_t groups = 1;
    int64_t outer = 1;
    int64_t n = 1;
    int64_t inner = 1;
    int64_t channels() const { return groups * n; }
};

int64_t run_product(const Shape& s, size_t from, size_t to) {
    int64_t p = 1;
    for (size_t i = from; i < to; ++i) {
        p *= s[i];
    }
    return p;
}

std::vector<int64_t> free_axes(int64_t rank, const std::vector<int64_t>& batch,
                               const std::vector<int64_t>& contract) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < rank; ++i) {
        if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
            std::find(contract.begin(), contract.end(), i) == contract.end()) {
            out.push_back(i);
        }
    }
    return out;
}

std::optional<Producer> dot_producer(const Graph& g, const Node& n) {
    const Dot& d = n.as<Dot>();
    Producer p;
    p.operand = g.constant(n.inputs[1]) != nullptr ? 1 : 0;
    const Tensor* w = g.constant(n.inputs[p.operand]);
    if (w == nullptr || !d.a_batch.empty()) {
        return std::nullopt;
    }
    bool left = p.operand == 0;
    auto free = free_axes(w->rank(), {}, left ? d.a_contract : d.b_contract);
    if (free.size() != 1) {
        return std::nullopt;
    }
    auto axis = static_cast<size_t>(free[0]);
    p.channel_axis = left ? 0 : g.type(n.outputs[0]).rank() - 1;
    p.outer = run_product(w->shape(), 0, axis);
    p.n = w->shape()[axis];
    p.inner = run_product(w->shape(), axis + 1, w->shape().size());
    return p;
}

std::optional<Producer> layout(const Graph& g, const Node& n) {
    if (n.is(dot_def)) {
        return dot_producer(g, n);
    }
    const Tensor* w = n.inputs.size() == 2 ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr) {
        return std::nullopt;
    }
    Producer p;
    if (n.is(ops::conv_def)) {
        p.n = w->shape()[0];
        p.inner = run_product(w->shape(), 1, w->shape().size());
        return p;
    }
    if (n.is(ops::conv_transpose_def)) {
        p.groups = n.as<ops::ConvTranspose>().groups;
        p.outer = w->shape()[0] / p.groups;
        p.n = w->shape()[1];
        p.inner = run_product(w->shape(), 2, w->shape().size());
        return p;
    }
    return std::nullopt;
}

bool is_plain_float(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16 || t == DType::F64;
}

// Whether a map from `from` to `to` keeps every value that it does not compute.
bool keeps_values(DType from, DType to) {
    return from == to || (to == DType::F32 && (from == DType::F16 || from == DType::BF16));
}

std::optional<Producer> producer(const Site& s, Value v, int64_t max_bytes) {
    const Graph& g = s.g_const();
    const Node* n = g.producer(v);
    if (n == nullptr || s.uses(v) > 1 || !is_plain_float(g.type(v).dtype)) {
        return std::nullopt;
    }
    auto p = layout(g, *n);
    if (!p) {
        return std::nullopt;
    }
    Value w = n->inputs[p->operand];
    const Tensor& t = *g.constant(w);
    if (s.uses(w) > 1 || !is_plain_float(t.dtype()) || t.count() == 0 ||
        static_cast<int64_t>(t.bytes().size()) > max_bytes) {
        return std::nullopt;
    }
    p->node = n;
    return p;
}

// The value of a constant per channel of `axis`, when it varies along no other axis.
std::optional<std::vector<double>> by_channel(const Tensor& t, int64_t rank, int64_t axis,
                                              int64_t channels) {
    std::vector<double> out;
    if (t.count() != 1) {
        int64_t own = axis - (rank - t.rank());
        if (own < 0 || t.count() != channels || t.shape()[static_cast<size_t>(own)] != channels) {
            return std::nullopt;
        }
    }
    for (int64_t c = 0; c < channels; ++c) {
        out.push_back(t.get_f64(t.count() == 1 ? 0 : c));
    }
    return out;
}

// Affine functions of x, instruction by instruction, for one channel.
struct Pair {
    double scale = 0;
    double offset = 0;
};

std::optional<Pair> combine(ExprOp op, Pair a, Pair b) {
    switch (op) {
    case ExprOp::Add:
        return Pair{a.scale + b.scale, a.offset + b.offset};
    case ExprOp::Sub:
        return Pair{a.scale - b.scale, a.offset - b.offset};
    case ExprOp::Neg:
        return Pair{-a.scale, -a.offset};
    case ExprOp::Mul:
        if (a.scale != 0 && b.scale != 0) {
            return std::nullopt;
        }
        return Pair{a.scale * b.offset + a.offset * b.scale, a.offset * b.offset};
    case ExprOp::Div:
        return b.scale != 0 ? std::nullopt
                            : std::optional(Pair{a.scale / b.offset, a.offset / b.offset});
    default:
        return std::nullopt;
    }
}

std::optional<Pair> affine_at(const Expr& e, size_t x,
                              const std::vector<std::vector<double>>& constants, size_t channel,
                              std::vector<Pair>& work) {
    for (size_t i = 0; i < e.code.size(); ++i) {
        const ExprInstr& c = e.code[i];
        if (!is_float(c.type)) {
            return std::nullopt;
        }
        if (c.op == ExprOp::In) {
            auto k = static_cast<size_t>(c.args[0]);
            work[i] = k == x ? Pair{1, 0} : Pair{0, constants[k][channel]};
        } else if (c.op == ExprOp::Const) {
            work[i] = {0, std::bit_cast<double>(c.imm)};
        } else {
            Pair second = arity(c.op) == 2 ? work[static_cast<size_t>(c.args[1])] : Pair{};
            auto r = combine(c.op, work[static_cast<size_t>(c.args[0])], second);
            if (!r) {
                return std::nullopt;
            }
            work[i] = *r;
        }
    }
    return work[e.code.size() - 1];
}

// The only non-constant operand of a map, if it has the shape of the result.
std::optional<size_t> variable(const Graph& g, const Node& n, const Dims& result) {
    std::optional<size_t> x;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        if (g.constant(n.inputs[i]) == nullptr) {
            if (x || !(g.type(n.inputs[i]).dims == result)) {
                return std::nullopt;
            }
            x = i;
        }
    }
    return x;
}

// A map as an affine function of operand x, channel by channel.
std::optional<Affine> affine(const Graph& g, const Node& n, size_t x, int64_t rank, int64_t axis,
                             int64_t channels) {
    std::vector<std::vector<double>> constants(n.inputs.size());
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        if (i != x) {
            auto v = by_channel(*g.constant(n.inputs[i]), rank, axis, channels);
            if (!v) {
                return std::nullopt;
            }
            constants[i] = std::move(*v);
        }
    }
    const Expr& body = n.as<Map>().body;
    std::vector<Pair> work(body.code.size());
    Affine out;
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
        auto p = affine_at(body, x, constants, c, work);
        if (!p || !std::isfinite(p->scale) || !std::isfinite(p->offset)) {
            return std::nullopt;
        }
        out.scale.push_back(p->scale);
        out.offset.push_back(p->offset);
    }
    return out;
}

template <class T, class F>
void for_weights(const Producer& p, const T& load_store, const F& factor) {
    int64_t i = 0;
    for (int64_t group = 0; group < p.groups; ++group) {
        for (int64_t o = 0; o < p.outer; ++o) {
            for (int64_t j = 0; j < p.n; ++j) {
                double f = factor(group * p.n + j);
                for (int64_t k = 0; k < p.inner; ++k) {
                    load_store(i++, f);
                }
            }
        }
    }
}

Tensor scaled(const Tensor& w, const Producer& p, const std::vector<double>& scale) {
    Tensor out = Tensor::empty(w.dtype(), w.shape());
    auto factor = [&scale](int64_t c) { return scale[static_cast<size_t>(c)]; };
    if (w.dtype() == DType::F32) {
        const float* from = w.as<float>().data();
        float* to = out.as_mutable<float>().data();
        for_weights(
            p,
            [&](int64_t i, double f) {
                to[i] = static_cast<float>(static_cast<double>(from[i]) * f);
            },
            factor);
    } else {
        for_weights(
            p, [&](int64_t i, double f) { out.set_f64(i, w.get_f64(i) * f); }, factor);
    }
    return out;
}

bool all_are(const std::vector<double>& v, double x) {
    return std::all_of(v.begin(), v.end(), [x](double e) { return e == x; });
}

// scale * (weights . x) + offset with the scale in the weights.
Value rebuilt(Site& s, const Producer& p, const Affine& a, const Type& result) {
    Graph& g = s.g();
    Values in = p.node->inputs;
    const OpDef& def = *p.node->def;
    std::shared_ptr<const void> attrs = p.node->attrs;
    const Tensor w = *g.constant(in[p.operand]);
    if (!all_are(a.scale, 1)) {
        in[p.operand] = ops::constant(g, scaled(w, p, a.scale));
    }
    Value y = ops::cast(g, g.add(def, attrs, in)[0], result.dtype);
    if (all_are(a.offset, 0)) {
        return y;
    }
    Shape shape(static_cast<size_t>(result.rank() - p.channel_axis), 1);
    shape[0] = p.channels();
    Tensor offset = Tensor::of(result.dtype, shape, std::span<const double>(a.offset));
    return ops::add(g, y, ops::constant(g, offset));
}

std::optional<Values> fold(Site& s) {
    constexpr int64_t max_bytes = int64_t{64} << 20;
    Type result = s.result();
    auto x = variable(s.g(), s.node(), result.dims);
    if (!x || !keeps_values(s.in_type(*x).dtype, result.dtype)) {
        return std::nullopt;
    }
    // x is the product, or the product plus a bias.
    Value v = s.in(*x);
    auto p = producer(s, v, max_bytes);
    const Node* bias = p ? nullptr : s.produced(v, map_def);
    std::optional<size_t> inner;
    if (bias != nullptr && s.uses(v) <= 1) {
        inner = variable(s.g(), *bias, result.dims);
        inner = inner && keeps_values(s.g().type(bias->inputs[*inner]).dtype, s.in_type(*x).dtype)
                    ? inner
                    : std::nullopt;
        p = inner ? producer(s, bias->inputs[*inner], max_bytes) : std::nullopt;
    }
    if (!p) {
        return std::nullopt;
    }
    int64_t rank = result.rank();
    auto outer = affine(s.g(), s.node(), *x, rank, p->channel_axis, p->channels());
    if (!outer || (all_are(outer->scale, 1) && all_are(outer->offset, 0))) {
        return std::nullopt; // nothing to fold, but perhaps a conversion of what is stored
    }
    if (inner) {
        auto first = affine(s.g(), *bias, *inner, rank, p->channel_axis, p->channels());
        if (!first ||
            (all_are(outer->scale, 1) && all_are(first->scale, 1) && all_are(first->offset, 0))) {
            return std::nullopt; // a bias behind a conversion: the target form too
        }
        for (size_t c = 0; c < outer->scale.size(); ++c) {
            outer->offset[c] += outer->scale[c] * first->offset[c];
            outer->scale[c] *= first->scale[c];
        }
    } else if (all_are(outer->scale, 1)) {
        return std::nullopt; // a bias: the target form
    }
    return Values{rebuilt(s, *p, *outer, result)};
}

} // namespace

const Pass fold_scales = {
    .name = "fold_scales",
    .summary = "fold constant scales and biases into weights",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, fold}};
            return apply_rules(g, Rules(rows),
                               {&dot_def, &ops::conv_def, &ops::conv_transpose_def});
        },
};

} // namespace ingot::passes
