// SPDX-License-Identifier: Apache-2.0
// raise_attention: softmax(q . k, scaled, capped and masked) . v, for all layouts of q, k and v,
// with the weights before the values or behind them, the scale on either operand or on the scores,
// one for each head too, and keys shared by groups of heads.
#include "passes/attention_operands.h"
#include "passes/passes.h"

#include <algorithm>
#include <cmath>

namespace ingot::passes {

namespace {

using ops::Attention;

Value without_axis(Graph& g, Value v, size_t axis) {
    Dims d = g.type(v).dims;
    d.erase(d.begin() + static_cast<int64_t>(axis));
    return ops::reshape(g, v, d);
}

// --- masks

std::optional<Value> condition_value(Graph& g, const View& v, const Condition& c) {
    auto value = v.value(c.term);
    if (!value || g.type(*value).dtype != DType::Bool) {
        return std::nullopt;
    }
    return c.negated ? ops::logical_not(g, *value) : *value;
}

// A number to add to the scores in the place of `fill`, which replaces them: a row that is hidden
// as a whole gets equal scores by it too, because no score is left over in the sum.
double absorbing(double fill, DType t) {
    return t == DType::F16 ? fill : -1e30;
}

// All masks but the causal one as one value; an invalid value where there is none.
std::optional<Value> combined(Graph& g, const View& v, const Scores& s, DType dtype) {
    Value keep;
    for (const Condition& c : s.keep) {
        auto value = condition_value(g, v, c);
        if (!value) {
            return std::nullopt;
        }
        keep = keep.valid() ? ops::binary(g, ExprOp::And, keep, *value) : *value;
    }
    Value added;
    for (Value m : s.added) {
        Value wide = ops::cast(g, m, added.valid() ? g.type(added).dtype : g.type(m).dtype);
        added = added.valid() ? ops::add(g, added, wide) : wide;
    }
    if (s.replaced) {
        auto shown = condition_value(g, v, s.replaced->shown);
        if (!shown) {
            return std::nullopt;
        }
        DType t = added.valid() ? g.type(added).dtype : dtype;
        Value zero = added.valid() ? added : ops::scalar(g, t, 0);
        added = ops::select(g, *shown, zero, ops::scalar(g, t, absorbing(s.replaced->fill, t)));
    }
    if (!added.valid() || !keep.valid()) {
        return added.valid() ? added : keep;
    }
    DType t = g.type(added).dtype;
    return ops::select(g, keep, added, ops::scalar(g, t, -INFINITY));
}

// Drops an added mask that is exactly the causal one.
void simplify_masks(const View& v, Scores& s, DType dtype) {
    for (size_t i = 0; i < s.added.size() && !s.causal; ++i) {
        auto p = penalty(v, v.term(s.added[i]), dtype);
        if (!p) {
            continue;
        }
        Visible seen = visible(v, p->shown);
        bool all = seen.causal && seen.rest.empty() && seen.causal->offset.bounds().low >= 0;
        if (all) {
            s.causal = seen.causal;
            s.added.erase(s.added.begin() + static_cast<int64_t>(i));
            return;
        }
    }
}

// The mask with an axis for heads where the scores had none.
std::optional<Value> mask_4d(Graph& g, Value mask, const Dims& scores, size_t batch) {
    Dims d = g.type(mask).dims;
    if (broadcast(d, scores) != scores) {
        return std::nullopt;
    }
    if (batch <= 2) {
        if (d.size() > 2) {
            d.insert(d.begin() + static_cast<int64_t>(d.size()) - 2, 2 - batch, Dim(1));
        }
        return ops::reshape(g, mask, d);
    }
    d.insert(d.begin(), scores.size() - d.size(), Dim(1));
    auto heads = d.begin() + static_cast<int64_t>(batch) - 1;
    bool shared = std::all_of(d.begin(), heads, [](const Dim& x) { return x.is_const(1); });
    if (!shared) {
        // One axis cannot broadcast a part of what it merges.
        std::copy_n(scores.begin(), batch - 1, d.begin());
        mask = ops::broadcast_to(g, mask, d);
    }
    const Dims merged = four_dims(d, batch);
    return ops::reshape(g, mask, merged);
}

// --- windows

// Masks of windowed scores over [B*W, H, S, T]; nullopt where one depends on the batch.
std::optional<Value> window_mask(Graph& g, const Scores& s) {
    const Dims& w = *s.windows;
    Value sum;
    auto add = [&](Value m, size_t rank) {
        Dims d = g.type(m).dims;
        d.insert(d.begin(), d.size() < rank ? rank - d.size() : 0, Dim(1));
        if (d.size() != rank || !d[0].is_const(1) || !is_float(g.type(m).dtype)) {
            return false;
        }
        d.insert(d.begin(), 5 - rank, Dim(1));
        m = ops::reshape(g, m, d);
        sum = sum.valid() ? ops::add(g, sum, ops::cast(g, m, g.type(sum).dtype)) : m;
        return true;
    };
    for (Value m : s.added_to_windows) {
        if (!add(m, 5)) {
            return std::nullopt;
        }
    }
    for (Value m : s.added) {
        if (!add(m, 4)) {
            return std::nullopt;
        }
    }
    Dims d = g.type(sum).dims;
    d[0] = w[0];
    d[1] = w[1];
    return ops::reshape(g, ops::broadcast_to(g, sum, d), {w[0] * w[1], d[2], d[3], d[4]});
}

// --- the whole

// The softmax that produces p, past a guard that turns NaN into 0.
const Node* softmax_behind(const Site& s, const View& v, Value p) {
    Term t = v.term(p);
    uint32_t uses = 1;
    if (v.is(t, ExprOp::Select) && v.is(v.arg(t, 0), ExprOp::IsNan) &&
        v.is_number(v.arg(t, 1), 0) && v.same(v.arg(v.arg(t, 0), 0), v.arg(t, 2))) {
        t = v.arg(t, 2);
        uses = 2;
    }
    const Node* n = v.node(t, ops::softmax_def);
    if (n == nullptr || s.uses(n->outputs[0]) > uses) {
        return nullptr;
    }
    const auto& a = n->as<ops::Softmax>();
    const Type& type = s.g_const().type(n->inputs[0]);
    return !a.log && a.axis == type.rank() - 1 && type.dims == s.g_const().type(p).dims ? n
                                                                                        : nullptr;
}

// The second product: weights are the softmax of scores [batch..., queries, keys].
struct WeightedValues {
    const Node* softmax = nullptr;
    Operand values; // [batch..., keys, elements]
    size_t batch = 0;
    Axes result; // the permutation of [batch..., queries, elements] that gives the product's result
};

// The weights as the first or the second operand of the product, and the values as the other.
std::optional<WeightedValues> weighted_by(const Site& s, const View& v, const Contraction& c,
                                          bool second) {
    Operand weights = second ? c.b : c.a;
    WeightedValues w{nullptr, second ? c.a : c.b, c.batch, {}};
    peel_permutation(v.graph(), weights);
    const Value weighed = s.in(second ? 1 : 0);
    if (weights.value != weighed && s.uses(weighed) > 1) {
        return std::nullopt;
    }
    w.softmax = softmax_behind(s, v, weights.value);
    const auto rows = static_cast<int64_t>(c.batch);
    if (w.softmax == nullptr || weights.axes.size() != c.batch + 2 ||
        weights.axes[c.batch] != rows) {
        return std::nullopt; // queries are the last axis but one of the scores
    }
    // Batch axes in the order of the scores.
    const Axes values = w.values.axes;
    bool shared = values.size() != weights.axes.size();
    for (size_t i = 0; i < c.batch; ++i) {
        auto to = static_cast<size_t>(weights.axes[i]);
        if (shared && to != i) {
            return std::nullopt;
        }
        if (!shared) {
            w.values.axes[to] = values[i];
        }
        w.result.push_back(weights.axes[i]);
    }
    std::swap(w.values.axes[values.size() - 1], w.values.axes[values.size() - 2]);
    w.result.push_back(second ? rows + 1 : rows);
    w.result.push_back(second ? rows : rows + 1);
    return w;
}

std::optional<WeightedValues> weighted_values(const Site& s, const View& v) {
    auto c = contraction(v.graph(), s.node());
    if (!c) {
        return std::nullopt;
    }
    auto w = weighted_by(s, v, *c, false);
    return w ? w : weighted_by(s, v, *c, true);
}

struct Match {
    Contraction qk;
    Operand values;
    Axes result;
    Scores scores;
    Dims score_dims;
    DType score_dtype = DType::F32;
};

std::optional<Match> match(const Site& s) {
    const Graph& g = s.g_const();
    View v(g);
    auto pv = weighted_values(s, v);
    if (!pv) {
        return std::nullopt;
    }
    Match m;
    const Type& type = g.type(pv->softmax->inputs[0]);
    m.score_dims = type.dims;
    m.score_dtype = type.dtype;
    auto found = scores(v, v.term(pv->softmax->inputs[0]), type.dtype);
    if (!found || s.uses(found->product) > 1) {
        return std::nullopt;
    }
    Dims product = g.type(found->product).dims;
    auto qk = contraction(g, *g.producer(found->product));
    if (qk && qk->batch + 1 == pv->batch) {
        product.insert(product.begin(), Dim(1)); // where one image was left out
        qk->batch = pv->batch;
    }
    if (!qk || qk->batch != pv->batch || !(product == type.dims)) {
        return std::nullopt;
    }
    m.scores = *found;
    m.qk = *qk;
    m.values = pv->values;
    m.result = pv->result;
    return m;
}

// The result of attention, [B, H, queries, elements], as that of the second product.
Value as_product(Graph& g, Value y, const Axes& result, const Type& out) {
    Dims d = out.dims;
    for (size_t i = 0; i < result.size(); ++i) {
        d[static_cast<size_t>(result[i])] = out.dims[i];
    }
    return ops::cast(g, ops::permute(g, ops::reshape(g, y, d), result), out.dtype);
}

// Replaces keys and values by those before the repetition per head of a group, if both were
// repeated.
void ungroup(Graph& g, Match& m) {
    if (m.qk.batch != 2 || m.qk.b.axes.size() != 4 || m.values.axes.size() != 4) {
        return;
    }
    auto head_k = static_cast<size_t>(m.qk.b.axes[1]);
    auto head_v = static_cast<size_t>(m.values.axes[1]);
    auto k = before_repetition(g, m.qk.b, head_k);
    auto v = before_repetition(g, m.values, head_v);
    if (k && v && g.type(*k).dims[head_k] == g.type(*v).dims[head_v]) {
        m.qk.b.value = without_axis(g, *k, head_k + 1);
        m.values.value = without_axis(g, *v, head_v + 1);
    }
}

std::optional<Values> raise(Site& s) {
    Graph& g = s.g();
    auto m = match(s);
    Type out = s.result();
    if (!m || !is_float(out.dtype)) {
        return std::nullopt;
    }
    View v(g);
    for (Operand* o : {&m->qk.a, &m->qk.b}) {
        peel(g, v, *o);
        m->scores.scale *= o->scale;
    }
    Operand values = m->values;
    peel(g, v, values);
    if (values.scale == 1) {
        m->values = values;
    }
    bool typed = g.type(m->qk.a.value).dtype == g.type(m->qk.b.value).dtype &&
                 g.type(m->qk.a.value).dtype == g.type(m->values.value).dtype;
    if (!typed || !(m->scores.scale != 0)) {
        return std::nullopt;
    }
    const auto& windows = m->scores.windows;
    bool windowed = windows && !m->scores.added_to_windows.empty();
    if (windows && (!windowed || m->qk.batch != 2 || !m->scores.keep.empty() ||
                    m->scores.replaced || !(*windows)[1].is_const())) {
        return std::nullopt;
    }
    simplify_masks(v, m->scores, m->score_dtype);
    auto mask = windowed ? window_mask(g, m->scores) : combined(g, v, m->scores, m->score_dtype);
    if (mask && mask->valid() && !windowed) {
        mask = mask_4d(g, *mask, m->score_dims, m->qk.batch);
    }
    if (!mask) {
        return std::nullopt;
    }
    if (!windowed) {
        ungroup(g, *m);
    }
    Value q = in_order(g, m->qk.a, m->qk.batch);
    if (m->scores.head_scale) {
        if (m->qk.batch != 2) {
            return std::nullopt;
        }
        Value factor = *m->scores.head_scale;
        DType wide = g.type(factor).dtype;
        q = ops::cast(g, ops::mul(g, ops::cast(g, q, wide), factor), g.type(q).dtype);
    }
    Value k = in_order(g, m->qk.b, m->qk.batch);
    Value x = in_order(g, m->values, m->qk.batch);
    if (!g.type(q).dims[1].is_const() || !g.type(k).dims[1].is_const()) {
        return std::nullopt;
    }
    Attention a{m->scores.scale, m->scores.softcap, m->scores.causal.has_value(),
                m->scores.causal ? m->scores.causal->offset : Dim(0)};
    return Values{as_product(g, ops::attention(g, a, q, k, x, *mask), m->result, out)};
}

} // namespace

const Pass raise_attention = {
    .name = "raise_attention",
    .summary = "recognise attention",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&dot_def, raise}};
            return apply_rules(g, Rules(rows));
        },
};

} // namespace ingot::passes
