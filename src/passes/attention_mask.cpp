// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_mask.h"

#include "passes/simplify.h"

#include <cmath>

namespace ingot::passes {

namespace {

// row * i + column * j + offset for the indices i of the query and j of the key.
struct IndexForm {
    int64_t row = 0;
    int64_t column = 0;
    Dim offset = 0;
};

// A leaf that counts along the last axis (keys) or the one before (queries), or equals one size.
std::optional<IndexForm> counted(const Graph& g, Value v) {
    const Type& t = g.type(v);
    auto p = progression(g, v);
    if (!p || !is_integer(t.dtype)) {
        return std::nullopt;
    }
    IndexForm f{0, 0, p->start};
    for (int64_t axis = 0; axis < t.rank(); ++axis) {
        int64_t from_end = t.rank() - axis;
        if (t.dims[static_cast<size_t>(axis)].is_const(1)) {
            continue;
        }
        if (from_end > 2) {
            return std::nullopt;
        }
        (from_end == 1 ? f.column : f.row) = p->step;
    }
    return f;
}

std::optional<IndexForm> index_form(const View& v, Term t, int depth = 0) {
    if (depth > 8) {
        return std::nullopt;
    }
    if (auto leaf = v.leaf(t)) {
        return counted(v.graph(), *leaf);
    }
    if (auto n = v.number(t)) {
        bool whole = *n == std::floor(*n) && std::abs(*n) < 1e15;
        return whole ? std::optional(IndexForm{0, 0, static_cast<int64_t>(*n)}) : std::nullopt;
    }
    ExprOp o = v.op(t);
    if (o == ExprOp::Cast) {
        return index_form(v, v.arg(t, 0), depth + 1);
    }
    if (o != ExprOp::Add && o != ExprOp::Sub) {
        return std::nullopt;
    }
    auto a = index_form(v, v.arg(t, 0), depth + 1);
    auto b = index_form(v, v.arg(t, 1), depth + 1);
    if (!a || !b) {
        return std::nullopt;
    }
    int64_t sign = o == ExprOp::Add ? 1 : -1;
    return IndexForm{a->row + sign * b->row, a->column + sign * b->column,
                     a->offset + Dim(sign) * b->offset};
}

// a <= b (or a < b) as j <= i + offset.
std::optional<Causal> compared(const View& v, Term a, Term b, bool strict) {
    auto x = index_form(v, a);
    auto y = index_form(v, b);
    if (!x || !y || x->row - y->row != -1 || x->column - y->column != 1) {
        return std::nullopt;
    }
    return Causal{y->offset - x->offset - Dim(strict ? 1 : 0)};
}

// A constant whose last two axes are a lower triangle or a part of one.
std::optional<Causal> triangle(const Graph& g, Value v) {
    const Node* n = g.producer(v);
    Causal c{0};
    if (n != nullptr && n->is(slice_def)) {
        const Slice& a = n->as<Slice>();
        size_t r = a.sizes.size();
        for (int64_t step : a.steps) {
            if (step != 1) {
                return std::nullopt;
            }
        }
        if (r < 2) {
            return std::nullopt;
        }
        c.offset = a.starts[r - 2] - a.starts[r - 1];
        v = n->inputs[0];
    }
    const Tensor* t = g.constant(v);
    if (t == nullptr || t->rank() < 2 || t->shape().back() < 2 || is_float(t->dtype())) {
        return std::nullopt;
    }
    int64_t columns = t->shape().back();
    int64_t rows = t->shape()[t->shape().size() - 2];
    if (rows * columns != t->count()) {
        return std::nullopt;
    }
    for (int64_t i = 0; i < t->count(); ++i) {
        if ((t->get_i64(i) != 0) != (i % columns <= i / columns)) {
            return std::nullopt;
        }
    }
    return c;
}

} // namespace

bool hides(double fill, DType scores) {
    return fill <= (scores == DType::F16 ? -3e4 : -1e9);
}

std::optional<Causal> causal(const View& v, const Condition& c) {
    if (auto leaf = v.leaf(c.term)) {
        return c.negated ? std::nullopt : triangle(v.graph(), *leaf);
    }
    ExprOp o = v.op(c.term);
    if (o == ExprOp::Cast) {
        return causal(v, {v.arg(c.term, 0), c.negated});
    }
    if (o != ExprOp::Le && o != ExprOp::Lt) {
        return std::nullopt;
    }
    Term a = v.arg(c.term, 0);
    Term b = v.arg(c.term, 1);
    bool strict = o == ExprOp::Lt;
    return c.negated ? compared(v, b, a, !strict) : compared(v, a, b, strict);
}

Visible visible(const View& v, const Condition& c) {
    constexpr size_t max_conditions = 8;
    Visible out;
    std::vector<Condition> work = {c};
    while (!work.empty()) {
        Condition now = work.back();
        work.pop_back();
        ExprOp o = v.op(now.term);
        bool splits = o == (now.negated ? ExprOp::Or : ExprOp::And);
        auto known = v.number(now.term);
        if (known && (*known != 0) != now.negated) {
            continue;
        }
        if (o == ExprOp::Not) {
            work.push_back({v.arg(now.term, 0), !now.negated});
        } else if (splits && work.size() + out.rest.size() < max_conditions) {
            work.push_back({v.arg(now.term, 1), now.negated});
            work.push_back({v.arg(now.term, 0), now.negated});
        } else if (auto found = out.causal ? std::nullopt : causal(v, now)) {
            out.causal = found;
        } else {
            out.rest.push_back(now);
        }
    }
    return out;
}

std::optional<Penalty> penalty(const View& v, Term t, DType scores) {
    if (!v.is(t, ExprOp::Select)) {
        return std::nullopt;
    }
    auto a = v.number(v.arg(t, 1));
    auto b = v.number(v.arg(t, 2));
    if (!a || !b) {
        return std::nullopt;
    }
    if (*a == 0 && hides(*b, scores)) {
        return Penalty{{v.arg(t, 0), false}, *b};
    }
    if (*b == 0 && hides(*a, scores)) {
        return Penalty{{v.arg(t, 0), true}, *a};
    }
    return std::nullopt;
}

} // namespace ingot::passes
