// SPDX-License-Identifier: Apache-2.0
// raise_norm: layer, RMS, group and instance normalisation, and rows of length 1. Recognises the
// core (x - mean) / sqrt(variance + epsilon) first, then absorbs scales and biases one by one.
#include "passes/passes.h"
#include "passes/raise.h"

#include <cmath>

namespace ingot::passes {

namespace {

using ops::GroupNorm;
using ops::LayerNorm;

// --- the core

struct Core {
    Term x;
    LayerNorm attrs; // of x permuted
    std::optional<Term> scale;
    double factor = 1;         // where there is no scale
    std::vector<int64_t> perm; // that makes the normalised axis the last one; empty: it is
};

// The first normalised axis once `perm` has moved a single one that is not the last.
struct Arrangement {
    int64_t axis = 0;
    std::vector<int64_t> perm;
};

std::optional<Arrangement> arrangement(const std::vector<int64_t>& axes, int64_t rank) {
    if (auto first = trailing(axes, rank)) {
        return Arrangement{*first, {}};
    }
    if (axes.size() != 1) {
        return std::nullopt;
    }
    Arrangement a{rank - 1, {}};
    for (int64_t i = 0; i < rank; ++i) {
        if (i != axes[0]) {
            a.perm.push_back(i);
        }
    }
    a.perm.push_back(axes[0]);
    return a;
}

// A value that broadcasts against others of perm's rank, as it does once these are permuted.
Value permuted(Graph& g, Value v, const std::vector<int64_t>& perm) {
    if (perm.empty()) {
        return v;
    }
    Dims dims = g.type(v).dims;
    dims.insert(dims.begin(), perm.size() - dims.size(), Dim(1));
    return ops::permute(g, ops::reshape(g, v, dims), perm);
}

std::vector<int64_t> inverse_of(const std::vector<int64_t>& perm) {
    std::vector<int64_t> inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    return inverse;
}

Value permuted_back(Graph& g, Value v, const std::vector<int64_t>& perm) {
    return perm.empty() ? v : ops::permute(g, v, inverse_of(perm));
}

// The radicand of the only root in p's denominator; removes the root from p.
std::optional<Term> radicand(const View& v, Product& p) {
    for (size_t i = 0; i < p.den.size(); ++i) {
        if (auto r = v.root_of(p.den[i])) {
            p.den.erase(p.den.begin() + static_cast<int64_t>(i));
            return r;
        }
    }
    for (size_t i = 0; i < p.num.size(); ++i) {
        Term t = p.num[i];
        if (v.is(t, ExprOp::Pow) && v.is_number(v.arg(t, 1), -0.5)) {
            p.num.erase(p.num.begin() + static_cast<int64_t>(i));
            return v.arg(t, 0);
        }
    }
    return std::nullopt;
}

// x, when d is x - mean(x) over exactly these axes.
std::optional<Term> centred(const View& v, Term d, const std::vector<int64_t>& axes) {
    auto is_mean_of = [&](Term x, Term of_mean, double coefficient) {
        auto m = mean(v, of_mean, coefficient);
        return m && m->axes == axes && v.same(v.term(m->x), x);
    };
    if (v.is(d, ExprOp::Sub) && is_mean_of(v.arg(d, 0), v.arg(d, 1), 1)) {
        return v.arg(d, 0); // which may be a sum itself
    }
    Sum s = v.sum(d);
    if (s.parts.size() != 2 || s.bias != 0) {
        return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
        Term x = s.parts[i].term;
        if (s.parts[i].coefficient == 1 &&
            is_mean_of(x, s.parts[1 - i].term, -s.parts[1 - i].coefficient)) {
            return x;
        }
    }
    return std::nullopt;
}

std::optional<Core> match(const View& v, Term root) {
    Product p = v.product(root);
    auto under = radicand(v, p);
    if (!under) {
        return std::nullopt;
    }
    Sum s = v.sum(*under);
    if (s.parts.size() != 1 || !(s.bias > 0)) {
        return std::nullopt;
    }
    auto variance = mean(v, s.parts[0].term, s.parts[0].coefficient);
    auto d = variance ? v.square_of(v.term(variance->x)) : std::nullopt;
    auto a = d ? arrangement(variance->axes, v.graph().type(variance->x).rank()) : std::nullopt;
    if (!a) {
        return std::nullopt;
    }
    p = v.product(root, {*d});
    if (!radicand(v, p) || !p.den.empty() || !nearly(p.scale, 1) || !take(v, p.num, *d) ||
        p.num.size() > 1) {
        return std::nullopt;
    }
    auto x = centred(v, *d, variance->axes);
    Core c{x.value_or(*d), {a->axis, s.bias, !x.has_value()}, std::nullopt, 1, a->perm};
    if (!p.num.empty()) {
        c.scale = p.num[0];
    }
    return c;
}

// The same, spelled x * r + (bias - mean(x) * r) with r = scale / sqrt(variance + epsilon).
struct Spread {
    Core core;
    std::optional<Term> bias;
};

// x and mean(x), when the terms are x * r and -mean(x) * r.
std::optional<Core> spread_pair(const View& v, const Sum::Part& with_x,
                                const Sum::Part& with_mean) {
    Product p = v.product(with_x.term);
    auto under = radicand(v, p);
    Sum s = under ? v.sum(*under) : Sum{};
    if (s.parts.size() != 1 || !(s.bias > 0) || with_x.coefficient * p.scale != 1 ||
        !p.den.empty()) {
        return std::nullopt;
    }
    auto variance = mean(v, s.parts[0].term, s.parts[0].coefficient);
    auto d = variance ? v.square_of(v.term(variance->x)) : std::nullopt;
    auto a = d ? arrangement(variance->axes, v.graph().type(variance->x).rank()) : std::nullopt;
    auto x = a ? centred(v, *d, variance->axes) : std::nullopt;
    if (!x || !take(v, p.num, *x) || p.num.size() > 1) {
        return std::nullopt;
    }
    Product q = v.product(with_mean.term);
    auto same_root = radicand(v, q);
    if (!same_root || !v.same(*same_root, *under) || !q.den.empty() ||
        (!p.num.empty() && !take(v, q.num, p.num[0])) || q.num.size() != 1) {
        return std::nullopt;
    }
    auto m = mean(v, q.num[0], -q.scale * with_mean.coefficient);
    if (!m || m->axes != variance->axes || !v.same(v.term(m->x), *x)) {
        return std::nullopt;
    }
    Core c{*x, {a->axis, s.bias, false}, std::nullopt, 1, a->perm};
    if (!p.num.empty()) {
        c.scale = p.num[0];
    }
    return c;
}

std::optional<Spread> match_spread(const View& v, Term root) {
    Sum s = v.sum(root);
    if (s.bias != 0 || s.parts.size() < 2 || s.parts.size() > 3) {
        return std::nullopt;
    }
    for (size_t i = 0; i < s.parts.size(); ++i) {
        for (size_t j = 0; j < s.parts.size(); ++j) {
            auto core = i == j ? std::nullopt : spread_pair(v, s.parts[i], s.parts[j]);
            if (!core) {
                continue;
            }
            Spread out{*core, std::nullopt};
            size_t k = 3 - i - j;
            if (s.parts.size() == 3) {
                if (s.parts[k].coefficient != 1) {
                    return std::nullopt;
                }
                out.bias = s.parts[k].term;
            }
            return out;
        }
    }
    return std::nullopt;
}

// The larger of a term and a number.
struct Limited {
    Term term;
    double limit = 0;
};

Limited limited(const View& v, Term t) {
    for (int k = 0; v.is(t, ExprOp::Max) && k < 2; ++k) {
        if (auto n = v.number(v.arg(t, k))) {
            return {v.arg(t, 1 - k), *n};
        }
    }
    return {t, 0};
}

// x / max(|x|, limit), or x / sqrt(max(|x|^2, limit)), with |x| the length of a row: the RMS norm
// times 1 / sqrt(n). A limit matters for rows of zeros alone.
std::optional<Core> unit_rows(const View& v, Term root) {
    constexpr double most_limit = 1e-6; // of a length
    Product p = v.product(root);
    std::optional<Term> squares;
    double limit = 0;
    if (p.den.size() == 1 && v.is(p.den[0], ExprOp::Max)) {
        Limited length = limited(v, p.den[0]);
        squares = v.root_of(length.term);
        limit = length.limit;
        p.den.clear();
    } else if (auto under = radicand(v, p)) {
        Limited of_squares = limited(v, *under);
        squares = of_squares.term;
        limit = std::sqrt(of_squares.limit);
    }
    if (!squares || !p.den.empty() || p.num.size() != 1 || !nearly(p.scale, 1) ||
        !(limit >= 0 && limit <= most_limit)) {
        return std::nullopt;
    }
    auto sum = reduction(v, *squares, "sum");
    auto x = sum ? v.square_of(v.term(sum->x)) : std::nullopt;
    const Dims dims = sum ? v.graph().type(sum->x).dims : Dims();
    auto a = sum ? arrangement(sum->axes, static_cast<int64_t>(dims.size())) : std::nullopt;
    if (!x || !a || !v.same(*x, p.num[0])) {
        return std::nullopt;
    }
    double n = 1;
    for (int64_t axis : sum->axes) {
        n *= static_cast<double>(dims[static_cast<size_t>(axis)].as_const().value_or(0));
    }
    LayerNorm attrs{a->axis, limit * limit / n, true};
    return n > 0 ? std::optional(Core{*x, attrs, {}, 1 / std::sqrt(n), a->perm}) : std::nullopt;
}

Value filled(Graph& g, DType t, const Dims& dims, double v) {
    Tensor x = Tensor::empty(t, *ingot::as_const(dims));
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_f64(i, v);
    }
    return ops::constant(g, x);
}

// Makes the matched layer_norm, in the type of the result.
std::optional<Values> made(Site& s, const Core& m, std::optional<Term> bias) {
    Type out = s.result();
    Graph& g = s.g();
    View v(g);
    auto x = v.value(m.x);
    if (!x || !(g.type(*x).dims == out.dims) || !is_float(g.type(*x).dtype)) {
        return std::nullopt;
    }
    int64_t axes = out.rank() - m.attrs.axis;
    Value rows = permuted(g, ops::cast(g, *x, wider(g.type(*x).dtype, out.dtype)), m.perm);
    const Dims dims = g.type(rows).dims;
    Dims inner(dims.end() - axes, dims.end());
    std::optional<Value> scale;
    if (m.scale) {
        auto leaf = v.value(*m.scale);
        scale = leaf ? over_last(g, permuted(g, *leaf, m.perm), axes) : std::nullopt;
    } else if (ingot::as_const(inner)) {
        scale = filled(g, m.factor == 1 ? out.dtype : DType::F32, inner, m.factor);
    }
    auto offset = bias ? v.value(*bias) : std::nullopt;
    offset = offset ? over_last(g, permuted(g, *offset, m.perm), axes) : std::nullopt;
    if (!scale || !is_float(g.type(*scale).dtype) || (bias && !offset)) {
        return std::nullopt;
    }
    Value y = ops::layer_norm(g, m.attrs, rows, *scale, offset.value_or(Value{}));
    return Values{permuted_back(g, ops::cast(g, y, out.dtype), m.perm)};
}

std::optional<Values> raise_core(Site& s) {
    if (!is_float(s.result().dtype)) {
        return std::nullopt;
    }
    View v(s.g());
    Term root = v.term(s.copied()[0]);
    if (auto m = match(v, root)) {
        return made(s, *m, std::nullopt);
    }
    if (auto m = unit_rows(v, root)) {
        return made(s, *m, std::nullopt);
    }
    auto m = match_spread(v, root);
    return m ? made(s, m->core, m->bias) : std::nullopt;
}

// --- scales and biases that follow

// root = norm * other, or norm + other, as values.
struct Followed {
    Term norm;
    Value other;
    bool scales = false;
};

// Looks at the last operation only: constants with equal elements are parameters here.
std::optional<Followed> followed(const View& v, Term root, const OpDef& def) {
    bool scales = v.is(root, ExprOp::Mul);
    for (int k = 0; (scales || v.is(root, ExprOp::Add)) && k < 2; ++k) {
        auto other = v.value(v.arg(root, 1 - k));
        if (v.node(v.arg(root, k), def) != nullptr && other) {
            return Followed{v.arg(root, k), *other, scales};
        }
    }
    return std::nullopt;
}

std::optional<Values> into_layer_norm(Site& s) {
    Type out = s.result();
    Graph& g = s.g();
    View v(g);
    Term root = v.term(s.copied()[0]);
    auto f = is_float(out.dtype) ? followed(v, root, ops::layer_norm_def) : std::nullopt;
    const Node* n = f ? v.node(f->norm, ops::layer_norm_def) : nullptr;
    std::vector<int64_t> perm; // undone by a permutation behind the norm
    if (n == nullptr && is_float(out.dtype)) {
        f = followed(v, root, permute_def);
        const Node* back = f ? v.node(f->norm, permute_def) : nullptr;
        const Node* norm = back != nullptr ? g.producer(back->inputs[0]) : nullptr;
        if (norm != nullptr && norm->is(ops::layer_norm_def) && s.uses(back->outputs[0]) == 1 &&
            g.type(back->outputs[0]).dims == out.dims) {
            n = norm;
            perm = inverse_of(back->as<Permute>().perm);
        }
    }
    if (n == nullptr || s.uses(n->outputs[0]) > 1 || n->inputs.size() != 2 ||
        (perm.empty() && !(g.type(n->outputs[0]).dims == out.dims))) {
        return std::nullopt;
    }
    LayerNorm a = n->as<LayerNorm>();
    Value x = n->inputs[0];
    Value scale = n->inputs[1];
    auto other = over_last(g, permuted(g, f->other, perm), out.rank() - a.axis);
    if (!other || !is_float(g.type(*other).dtype) ||
        (f->scales && !all_are(g.constant(scale), 1))) {
        return std::nullopt;
    }
    x = ops::cast(g, x, wider(g.type(x).dtype, out.dtype));
    Value y =
        f->scales ? ops::layer_norm(g, a, x, *other) : ops::layer_norm(g, a, x, scale, *other);
    return Values{permuted_back(g, ops::cast(g, y, out.dtype), perm)};
}

// [C], when v is constant or not but varies only along axis 1 of rank `rank`.
std::optional<Value> over_channels(Graph& g, Value v, const Dim& channels, int64_t rank) {
    const Dims d = g.type(v).dims;
    int64_t shift = rank - static_cast<int64_t>(d.size());
    for (size_t i = 0; i < d.size(); ++i) {
        bool channel = static_cast<int64_t>(i) + shift == 1;
        if (!(channel ? d[i] == channels : d[i].is_const(1))) {
            return std::nullopt;
        }
    }
    return shift > 1 || shift < 0 ? std::nullopt : std::optional(ops::reshape(g, v, {channels}));
}

// A normalisation over groups of channels whose own scale and bias are trivial.
struct Groups {
    Value x; // [N,C,...]
    GroupNorm attrs;
};

// `n` normalises each row of [N, G, rest].
std::optional<GroupNorm> plain_rows(const Graph& g, const Node& n) {
    const Type& in = g.type(n.inputs[0]);
    if (in.rank() < 2 || !in.dims[1].is_const() || !all_are(g.constant(n.inputs[1]), 1)) {
        return std::nullopt;
    }
    if (n.is(ops::group_norm_def)) {
        const GroupNorm& a = n.as<GroupNorm>();
        bool plain = in.dims[1].is_const(a.groups) && all_are(g.constant(n.inputs[2]), 0);
        return plain ? std::optional(a) : std::nullopt;
    }
    const LayerNorm& a = n.as<LayerNorm>();
    bool plain = n.inputs.size() == 2 && !a.rms && a.axis == 2;
    return plain ? std::optional(GroupNorm{in.dims[1].value(), a.epsilon}) : std::nullopt;
}

std::optional<Groups> groups(const Site& s, Term t, const Dims& out) {
    const Graph& g = s.g_const();
    View v(g);
    auto leaf = v.leaf(t);
    const Node* n = leaf ? g.producer(*leaf) : nullptr;
    bool reshaped = n != nullptr && n->is(reshape_def);
    n = reshaped ? g.producer(n->inputs[0]) : n;
    if (n == nullptr || !(n->is(ops::group_norm_def) || n->is(ops::layer_norm_def)) ||
        s.uses(n->outputs[0]) > 1) {
        return std::nullopt;
    }
    auto a = plain_rows(g, *n);
    if (!a || out.size() < 2 || !out[1].is_const() || out[1].value() % a->groups != 0) {
        return std::nullopt;
    }
    Value x = n->inputs[0];
    const Node* before = g.producer(x);
    if (reshaped) {
        bool regroups = before != nullptr && before->is(reshape_def) &&
                        g.type(before->inputs[0]).dims == out && g.type(x).dims[0] == out[0];
        if (!regroups) {
            return std::nullopt;
        }
        x = before->inputs[0];
    }
    return g.type(x).dims == out ? std::optional(Groups{x, *a}) : std::nullopt;
}

// Absorbs norm * scale into a normalisation over groups.
std::optional<Values> scale_of_groups(Site& s) {
    Type out = s.result();
    if (!is_float(out.dtype) || out.rank() < 3) {
        return std::nullopt;
    }
    Graph& g = s.g();
    View v(g);
    Term root = v.term(s.copied()[0]);
    for (int k = 0; v.is(root, ExprOp::Mul) && k < 2; ++k) {
        auto n = groups(s, v.arg(root, k), out.dims);
        auto other = v.value(v.arg(root, 1 - k));
        auto scale = n && other ? over_channels(g, *other, out.dims[1], out.rank()) : std::nullopt;
        if (scale) {
            DType wide = wider(g.type(n->x).dtype, out.dtype);
            Value zero = filled(g, wide, {out.dims[1]}, 0);
            Value y = ops::group_norm(g, n->attrs, ops::cast(g, n->x, wide), *scale, zero);
            return Values{ops::cast(g, y, out.dtype)};
        }
    }
    return std::nullopt;
}

// Absorbs norm + bias into a group_norm without one.
std::optional<Values> bias_of_groups(Site& s) {
    Type out = s.result();
    if (!is_float(out.dtype) || out.rank() < 3) {
        return std::nullopt;
    }
    Graph& g = s.g();
    View v(g);
    auto f = followed(v, v.term(s.copied()[0]), ops::group_norm_def);
    const Node* n = f && !f->scales ? v.node(f->norm, ops::group_norm_def) : nullptr;
    if (n == nullptr || s.uses(n->outputs[0]) > 1 || !all_are(g.constant(n->inputs[2]), 0) ||
        !(g.type(n->outputs[0]).dims == out.dims)) {
        return std::nullopt;
    }
    GroupNorm a = n->as<GroupNorm>();
    Value x = n->inputs[0];
    Value scale = n->inputs[1];
    auto bias = over_channels(g, f->other, out.dims[1], out.rank());
    if (!bias) {
        return std::nullopt;
    }
    x = ops::cast(g, x, wider(g.type(x).dtype, out.dtype));
    return Values{ops::cast(g, ops::group_norm(g, a, x, scale, *bias), out.dtype)};
}

} // namespace

const Pass raise_norm = {
    .name = "raise_norm",
    .summary = "recognise layer, RMS, group and instance normalisation",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, raise_core},
                                           {&map_def, into_layer_norm},
                                           {&map_def, scale_of_groups},
                                           {&map_def, bias_of_groups}};
            return apply_rules(g, Rules(rows),
                               {&reduce_def, &ops::layer_norm_def, &ops::group_norm_def});
        },
};

} // namespace ingot::passes
