// SPDX-License-Identifier: Apache-2.0
// raise_attention: softmax(q . k, scaled, capped and masked) . v, for all layouts of q, k and v,
// with the scale on either operand or on the scores, one for each head too, and keys shared by
// groups of heads.
#include "passes/attention_scores.h"
#include "passes/passes.h"

#include <algorithm>
#include <cmath>

namespace ingot::passes {

namespace {

using ops::Attention;
using Axes = std::vector<int64_t>;

// An operand of a contraction: a value, and its axes as [batch..., rows, columns]; as [rows,
// columns] where all heads share it, and without the first batch axis where that has one element.
struct Operand {
    Value value;
    Axes axes;
    double scale = 1;
};

// The contraction with `batch` batch axes, one contracted and one free axis on each side.
struct Contraction {
    Operand a;
    Operand b;
    size_t batch = 0;
};

int64_t free_axis(int64_t rank, const Axes& batch, const Axes& contract) {
    std::vector<bool> used(static_cast<size_t>(rank), false);
    for (const Axes* axes : {&batch, &contract}) {
        for (int64_t i : *axes) {
            used[static_cast<size_t>(i)] = true;
        }
    }
    for (int64_t i = 0; i < rank; ++i) {
        if (!used[static_cast<size_t>(i)]) {
            return i;
        }
    }
    return -1;
}

// One image's heads by one matrix for all of them: [1, heads, rows, columns] by [rows, columns].
std::optional<Contraction> shared_contraction(const Graph& g, const Node& n) {
    const Dot& d = n.as<Dot>();
    const Type& a = g.type(n.inputs[0]);
    bool fits = d.a_batch.empty() && a.rank() == 4 && a.dims[0].is_const(1) &&
                d.a_contract == Axes{3} && g.type(n.inputs[1]).rank() == 2;
    if (!fits) {
        return std::nullopt;
    }
    int64_t contracted = d.b_contract[0];
    return Contraction{{n.inputs[0], {0, 1, 2, 3}}, {n.inputs[1], {1 - contracted, contracted}}, 2};
}

// Rows of both are the free axes; columns the contracted ones. (For the second contraction the
// caller swaps rows and columns of b.)
std::optional<Contraction> contraction(const Graph& g, const Node& n) {
    const Dot& d = n.as<Dot>();
    if (std::optional<Contraction> shared = shared_contraction(g, n)) {
        return shared;
    }
    size_t batch = d.a_batch.size();
    auto rank = static_cast<int64_t>(batch) + 2;
    if (d.a_contract.size() != 1 || g.type(n.inputs[0]).rank() != rank ||
        g.type(n.inputs[1]).rank() != rank) {
        return std::nullopt;
    }
    Contraction c{{n.inputs[0], d.a_batch}, {n.inputs[1], d.b_batch}, batch};
    c.a.axes.push_back(free_axis(rank, d.a_batch, d.a_contract));
    c.a.axes.push_back(d.a_contract[0]);
    c.b.axes.push_back(free_axis(rank, d.b_batch, d.b_contract));
    c.b.axes.push_back(d.b_contract[0]);
    return c;
}

// x without a scalar factor, and the factor.
std::optional<std::pair<double, Value>> factor_of(const View& v, Value x) {
    View::Scaled s = v.scaled(v.term(x));
    auto value = v.value(s.term);
    bool same_shape = value && *value != x && v.graph().type(*value) == v.graph().type(x);
    return same_shape && std::isfinite(s.scale) ? std::optional(std::pair(s.scale, *value))
                                                : std::nullopt;
}

// Removes a scalar factor from an operand, also before reshapes.
bool peel_factor(Graph& g, const View& v, Operand& o) {
    Value x = o.value;
    auto factor = factor_of(v, x);
    for (const Node* p = g.producer(x); !factor && p != nullptr && p->is(reshape_def);
         p = g.producer(x)) {
        x = p->inputs[0];
        factor = factor_of(v, x);
    }
    if (!factor) {
        return false;
    }
    const Dims d = g.type(o.value).dims;
    o.value = ops::reshape(g, factor->second, d);
    o.scale *= factor->first;
    return true;
}

// Peels scalar factors and permutations off an operand.
void peel(Graph& g, const View& v, Operand& o) {
    for (;;) {
        if (peel_factor(g, v, o)) {
            continue;
        }
        const Node* p = g.producer(o.value);
        if (p == nullptr || !p->is(permute_def)) {
            return;
        }
        for (int64_t& axis : o.axes) {
            axis = p->as<Permute>().perm[static_cast<size_t>(axis)];
        }
        o.value = p->inputs[0];
    }
}

// Where heads (axis `head`) repeat groups: the operand before the repetition, with an axis of 1
// after it.
std::optional<Value> before_repetition(const Graph& g, const Operand& o, size_t head) {
    const Node* merge = g.producer(o.value);
    const Node* repeat =
        merge != nullptr && merge->is(reshape_def) ? g.producer(merge->inputs[0]) : nullptr;
    if (repeat == nullptr || !repeat->is(broadcast_def)) {
        return std::nullopt;
    }
    Dims split = g.type(merge->inputs[0]).dims;
    Dims source = g.type(repeat->inputs[0]).dims;
    const Dims& merged = g.type(o.value).dims;
    if (split.size() != merged.size() + 1 || source.size() != split.size() ||
        !(split[head] * split[head + 1] == merged[head]) || !source[head + 1].is_const(1)) {
        return std::nullopt;
    }
    source[head + 1] = split[head + 1];
    if (!(source == split)) {
        return std::nullopt;
    }
    for (size_t i = 0; i < merged.size(); ++i) {
        if (i != head && !(merged[i] == split[i < head ? i : i + 1])) {
            return std::nullopt;
        }
    }
    return repeat->inputs[0];
}

Value without_axis(Graph& g, Value v, size_t axis) {
    Dims d = g.type(v).dims;
    d.erase(d.begin() + static_cast<int64_t>(axis));
    return ops::reshape(g, v, d);
}

// Dims of [batch..., rows, columns] as [B, H, rows, columns]: all batch axes but the last are B.
Dims four_dims(const Dims& d, size_t batch) {
    Dims out = d;
    if (batch <= 2) {
        out.insert(out.begin() + static_cast<int64_t>(batch), 2 - batch, Dim(1));
        return out;
    }
    for (size_t i = 1; i + 1 < batch; ++i) {
        out[0] = out[0] * d[i];
    }
    out.erase(out.begin() + 1, out.begin() + static_cast<int64_t>(batch) - 1);
    return out;
}

// The operand as [B, H, rows, columns].
Value in_order(Graph& g, const Operand& o, size_t batch) {
    Value v = ops::permute(g, o.value, o.axes);
    Dims d = g.type(v).dims;
    d.insert(d.begin(), batch + 2 - o.axes.size(), Dim(1));
    d = four_dims(d, batch);
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

struct Match {
    Contraction qk;
    Operand values;
    Scores scores;
    Dims score_dims;
    DType score_dtype = DType::F32;
};

std::optional<Match> match(const Site& s) {
    const Graph& g = s.g_const();
    View v(g);
    auto pv = contraction(g, s.node());
    if (!pv) {
        return std::nullopt;
    }
    for (size_t i = 0; i < pv->a.axes.size(); ++i) {
        if (pv->a.axes[i] != static_cast<int64_t>(i)) {
            return std::nullopt; // weights are [batch..., queries, keys]
        }
    }
    const Node* softmax = softmax_behind(s, v, s.in(0));
    if (softmax == nullptr) {
        return std::nullopt;
    }
    Match m;
    const Type& type = g.type(softmax->inputs[0]);
    m.score_dims = type.dims;
    m.score_dtype = type.dtype;
    auto found = scores(v, v.term(softmax->inputs[0]), type.dtype);
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
    m.values = pv->b;
    std::swap(m.values.axes[m.values.axes.size() - 1], m.values.axes[m.values.axes.size() - 2]);
    return m;
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
    Value y = ops::reshape(g, ops::attention(g, a, q, k, x, *mask), out.dims);
    return Values{ops::cast(g, y, out.dtype)};
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
