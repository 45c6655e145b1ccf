// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_scores.h"

#include <algorithm>
#include <cmath>

namespace ingot::passes {

namespace {

bool leads_to_product(const View& v, Term t, int depth = 0) {
    t = v.scaled(t).term;
    if (depth > 8) {
        return false;
    }
    if (v.is(t, ExprOp::Tanh)) {
        return leads_to_product(v, v.arg(t, 0), depth + 1);
    }
    if (v.is(t, ExprOp::Select)) {
        Term a = v.arg(t, 1);
        return leads_to_product(v, v.number(a) ? v.arg(t, 2) : a, depth + 1);
    }
    if (v.is(t, ExprOp::Add) || v.is(t, ExprOp::Mul)) {
        return leads_to_product(v, v.arg(t, 0), depth + 1) ||
               leads_to_product(v, v.arg(t, 1), depth + 1);
    }
    if (const Node* n = v.node(t, reshape_def)) {
        return leads_to_product(v, v.term(n->inputs[0]), depth + 1);
    }
    return v.node(t, dot_def) != nullptr;
}

// Whether a reshape only adds axes of size 1 before all others.
bool adds_leading_axes(const Graph& g, const Node& n) {
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dims& to = g.type(n.outputs[0]).dims;
    auto added = static_cast<ptrdiff_t>(to.size()) - static_cast<ptrdiff_t>(from.size());
    return added > 0 && std::equal(from.begin(), from.end(), to.begin() + added) &&
           std::all_of(to.begin(), to.begin() + added, [](const Dim& d) { return d.is_const(1); });
}

// Steps over a reshape that splits the first axis into windows, or joins it again (the walk starts
// at the softmax: joined comes first).
std::optional<Term> take_windows(const View& v, const Node& n, Scores& s) {
    const Dims& from = v.graph().type(n.inputs[0]).dims;
    const Dims& to = n.as<Reshape>().dims;
    const Dims& five = from.size() > to.size() ? from : to;
    const Dims& four = from.size() > to.size() ? to : from;
    bool splits = five.size() == 5 && four.size() == 4 && five[0] * five[1] == four[0] &&
                  std::equal(four.begin() + 1, four.end(), five.begin() + 2);
    bool inner = s.windows.has_value();
    if (!splits || inner != (to.size() == 5) || (inner ? *s.windows != five : !s.added.empty()) ||
        !s.keep.empty() || s.causal || s.replaced) {
        return std::nullopt;
    }
    if (inner) {
        s.added_to_windows = std::move(s.added);
        s.added.clear();
    }
    s.windows = five;
    return v.term(n.inputs[0]);
}

// select(condition, t, fill) or select(condition, fill, t).
std::optional<Term> take_condition(const View& v, Term t, DType scores, Scores& s) {
    auto a = v.number(v.arg(t, 1));
    auto b = v.number(v.arg(t, 2));
    if ((a && b) || (!a && !b) || !hides(a ? *a : *b, scores)) {
        return std::nullopt;
    }
    Penalty p{{v.arg(t, 0), a.has_value()}, a ? *a : *b};
    if (std::isinf(p.fill)) {
        Visible seen = visible(v, p.shown);
        if (s.causal && seen.causal) {
            return std::nullopt;
        }
        s.causal = seen.causal ? seen.causal : s.causal;
        s.keep.insert(s.keep.end(), seen.rest.begin(), seen.rest.end());
    } else if (s.replaced) {
        return std::nullopt;
    } else {
        s.replaced = p;
    }
    return v.arg(t, a ? 2 : 1);
}

// Removes added masks from a sum; the rest leads to the product.
std::optional<Term> take_added(const View& v, Term t, Scores& s) {
    Sum sum = v.sum(t);
    std::optional<Term> rest;
    for (const Sum::Part& part : sum.parts) {
        if (!rest && leads_to_product(v, part.term)) {
            rest = part.term;
            s.scale *= part.coefficient;
            continue;
        }
        auto value = v.value(part.term);
        constexpr double most_times = 4;
        bool whole = part.coefficient == std::floor(part.coefficient) && part.coefficient >= 1 &&
                     part.coefficient <= most_times;
        if (!value || !whole) {
            return std::nullopt;
        }
        s.added.insert(s.added.end(), static_cast<size_t>(part.coefficient), *value);
    }
    // A number added to all scores changes nothing, unless it swamps them.
    return std::abs(sum.bias) < 1e3 ? rest : std::nullopt;
}

// A factor that differs by head alone, of scores [B, H, S, T]; the rest leads to the product.
std::optional<Term> take_head_scale(const View& v, Term t, Scores& s) {
    for (int k = 0; v.is(t, ExprOp::Mul) && k < 2; ++k) {
        auto factor = v.value(v.arg(t, k));
        if (!factor || !leads_to_product(v, v.arg(t, 1 - k))) {
            continue;
        }
        const Type& type = v.graph().type(*factor);
        auto r = static_cast<size_t>(type.rank());
        bool by_head = is_float(type.dtype) && (r == 3 || (r == 4 && type.dims[0].is_const(1))) &&
                       type.dims[r - 1].is_const(1) && type.dims[r - 2].is_const(1);
        if (by_head) {
            s.head_scale = factor;
            return v.arg(t, 1 - k);
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<Scores> scores(const View& v, Term t, DType dtype) {
    Scores s;
    for (int depth = 0; depth < 8; ++depth) {
        if (s.scale == 1 && s.softcap == 0 && v.is(t, ExprOp::Select)) {
            auto rest = take_condition(v, t, dtype, s);
            if (!rest) {
                return std::nullopt;
            }
            t = *rest;
            continue;
        }
        const Node* regroups = v.node(t, reshape_def);
        if (s.scale == 1 && s.softcap == 0 && regroups != nullptr) {
            auto rest = !s.windows && adds_leading_axes(v.graph(), *regroups)
                            ? std::optional(v.term(regroups->inputs[0]))
                            : take_windows(v, *regroups, s);
            if (!rest) {
                return std::nullopt;
            }
            t = *rest;
            continue;
        }
        bool sums = v.is(t, ExprOp::Add) || v.is(t, ExprOp::Sub);
        if (s.scale == 1 && s.softcap == 0 && sums) {
            auto rest = take_added(v, t, s);
            if (!rest) {
                return std::nullopt;
            }
            t = *rest;
            continue;
        }
        View::Scaled k = v.scaled(t);
        s.scale *= k.scale;
        t = k.term;
        if (v.is(t, ExprOp::Tanh) && s.softcap == 0 && s.scale > 0) {
            s.softcap = s.scale; // cap * tanh(x / cap)
            s.scale = 1;
            View::Scaled inner = v.scaled(v.arg(t, 0));
            s.scale = inner.scale * s.softcap;
            t = inner.term;
        }
        break;
    }
    if (s.softcap == 0) {
        if (auto rest = take_head_scale(v, t, s)) {
            View::Scaled inner = v.scaled(*rest);
            s.scale *= inner.scale;
            t = inner.term;
        }
    }
    const Node* n = v.node(t, dot_def);
    if (n == nullptr || !std::isfinite(s.scale)) {
        return std::nullopt;
    }
    s.product = *v.leaf(t);
    return s;
}

} // namespace ingot::passes
