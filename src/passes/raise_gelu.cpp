// SPDX-License-Identifier: Apache-2.0
// raise_gelu: 0.5 x (1 + erf(x / sqrt 2)) and its tanh approximation, for all groupings of factors
// and constants.
#include "passes/passes.h"
#include "passes/raise.h"

#include <numbers>

namespace ingot::passes {

namespace {

constexpr double linear = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double cubic = linear * 0.044715;

// Constants of 16-bit models are rounded.
double tolerance(DType t) {
    return t == DType::F32 || t == DType::F64 ? 5e-4 : 5e-3;
}

bool all_same(const View& v, const std::vector<Term>& terms, Term x) {
    for (Term t : terms) {
        if (!v.same(t, x)) {
            return false;
        }
    }
    return true;
}

// The coefficient of x^n in k * t, or 0.
double coefficient(const View& v, double k, Term t, Term x, size_t n) {
    Product p = v.product(t, {x});
    bool fits = p.den.empty() && p.num.size() == n && all_same(v, p.num, x);
    return fits ? k * p.scale : 0;
}

// Whether u is c1 x + c3 x^3 for the constants of the approximation.
bool is_inner(const View& v, Term u, Term x, double close) {
    double c1 = 0;
    double c3 = 0;
    Sum s = v.sum(u);
    if (s.parts.size() == 1 && s.bias == 0) { // k x (b + c x^2)
        Product p = v.product(s.parts[0].term, {x});
        if (!p.den.empty() || p.num.size() != 2 || !take(v, p.num, x)) {
            return false;
        }
        double k = s.parts[0].coefficient * p.scale;
        s = v.sum(p.num[0]);
        c1 = k * s.bias;
        c3 = s.parts.size() == 1 ? coefficient(v, k * s.parts[0].coefficient, s.parts[0].term, x, 2)
                                 : 0;
    } else if (s.parts.size() == 2 && s.bias == 0) {
        for (const Sum::Part& part : s.parts) {
            c1 += coefficient(v, part.coefficient, part.term, x, 1);
            c3 += coefficient(v, part.coefficient, part.term, x, 3);
        }
    }
    return nearly(c1, linear, close) && nearly(c3, cubic, close);
}

struct Match {
    Term x;
    bool tanh = false;
};

// x, if f is one of the two functions of x.
std::optional<Match> match_function(const View& v, Term f, const std::vector<Term>& candidates,
                                    double close) {
    if (v.is(f, ExprOp::Erf)) {
        View::Scaled u = v.scaled(v.arg(f, 0));
        bool fits = nearly(u.scale, std::numbers::sqrt2 / 2, close);
        return fits ? std::optional(Match{u.term, false}) : std::nullopt;
    }
    for (Term x : candidates) {
        if (v.is(f, ExprOp::Tanh) && is_inner(v, v.arg(f, 0), x, close)) {
            return Match{x, true};
        }
    }
    return std::nullopt;
}

// Candidates for x in the tanh form: a linear part of the argument, or a factor of it.
std::vector<Term> candidates(const View& v, Term f) {
    std::vector<Term> out;
    if (!v.is(f, ExprOp::Tanh)) {
        return out;
    }
    Sum s = v.sum(v.arg(f, 0));
    for (const Sum::Part& part : s.parts) {
        out.push_back(v.scaled(part.term).term);
        if (v.is(part.term, ExprOp::Mul)) {
            out.push_back(v.scaled(v.arg(part.term, 0)).term);
            out.push_back(v.scaled(v.arg(part.term, 1)).term);
        }
    }
    return out;
}

std::optional<Match> match(const View& v, Term root, double close) {
    Product p = v.product(root);
    for (Term factor : p.num) {
        Sum s = v.sum(factor); // c (1 + f(u))
        if (s.parts.size() != 1 || !nearly(s.bias, s.parts[0].coefficient, close)) {
            continue;
        }
        Term f = s.parts[0].term;
        auto m = match_function(v, f, candidates(v, f), close);
        if (!m) {
            continue;
        }
        Product q = v.product(root, {m->x});
        if (q.den.empty() && q.num.size() == 2 && nearly(q.scale * s.bias, 0.5, close) &&
            take(v, q.num, m->x) && v.same(q.num[0], factor)) {
            return m;
        }
    }
    return std::nullopt;
}

std::optional<Values> raise(Site& s) {
    Type out = s.result();
    const Expr& body = s.as<Map>().body;
    ExprOp last = body.code.back().op;
    if (!is_float(out.dtype) ||
        (last != ExprOp::Mul && last != ExprOp::Div && last != ExprOp::Cast)) {
        return std::nullopt;
    }
    View v(s.g());
    auto m = match(v, v.term(s.copied()[0]), tolerance(out.dtype));
    auto x = m ? v.value(m->x) : std::nullopt;
    if (!x || !(s.g().type(*x).dims == out.dims)) {
        return std::nullopt;
    }
    DType wide = wider(s.g().type(*x).dtype, out.dtype);
    Value y = ops::gelu(s.g(), ops::cast(s.g(), *x, wide), m->tanh);
    return Values{ops::cast(s.g(), y, out.dtype)};
}

} // namespace

const Pass raise_gelu = {
    .name = "raise_gelu",
    .summary = "recognise GELU",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, raise}};
            return apply_rules(g, Rules(rows));
        },
};

} // namespace ingot::passes
