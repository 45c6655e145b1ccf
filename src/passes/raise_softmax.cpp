// SPDX-License-Identifier: Apache-2.0
// raise_softmax: exponentials over their sum, with or without the maximum subtracted, and the
// logarithm of that.
#include "passes/passes.h"
#include "passes/raise.h"

namespace ingot::passes {

namespace {

struct Match {
    Value x;
    int64_t axis = 0;
};

// The exponent z before the maximum over `axis` was subtracted.
std::optional<Term> without_max(const View& v, Term z, int64_t axis) {
    Sum s = v.sum(z);
    if (s.parts.size() != 2 || s.bias != 0) {
        return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
        const Sum::Part& x = s.parts[i];
        const Sum::Part& m = s.parts[1 - i];
        auto r = reduction(v, m.term, "max");
        if (x.coefficient == 1 && m.coefficient == -1 && r && r->axes.size() == 1 &&
            r->axes[0] == axis && v.same(v.term(r->x), x.term)) {
            return x.term;
        }
    }
    return std::nullopt;
}

// A sum over one axis of exponentials of the same shape: the exponent, and the axis.
struct Sums {
    Term exponent;
    Term exponential;
    int64_t axis = 0;
};

std::optional<Sums> sum_of_exponentials(const View& v, Term t) {
    auto r = reduction(v, t, "sum");
    if (!r || r->axes.size() != 1) {
        return std::nullopt;
    }
    Term e = v.term(r->x);
    if (!v.is(e, ExprOp::Exp)) {
        return std::nullopt;
    }
    return Sums{v.arg(e, 0), e, r->axes[0]};
}

std::optional<Match> matched(const View& v, const Sums& sums) {
    Term x = without_max(v, sums.exponent, sums.axis).value_or(sums.exponent);
    auto value = v.value(x);
    return value ? std::optional(Match{*value, sums.axis}) : std::nullopt;
}

std::optional<Match> match(const View& v, Term root) {
    Product p = v.product(root);
    if (p.num.size() != 1 || p.den.size() != 1 || p.scale != 1) {
        return std::nullopt;
    }
    auto sums = sum_of_exponentials(v, p.den[0]);
    if (!sums || !v.same(p.num[0], sums->exponential)) {
        return std::nullopt;
    }
    return matched(v, *sums);
}

// (x - max) - log(sum(exp(x - max))), or x - log(sum(exp(x))).
std::optional<Match> match_log(const View& v, Term root) {
    Sum s = v.sum(root);
    for (size_t i = 0; i < s.parts.size() && s.bias == 0; ++i) {
        if (!v.is(s.parts[i].term, ExprOp::Log) || s.parts[i].coefficient != -1) {
            continue;
        }
        auto sums = sum_of_exponentials(v, v.arg(s.parts[i].term, 0));
        if (!sums) {
            continue;
        }
        Sum exponent = v.sum(sums->exponent);
        bool same = exponent.parts.size() + 1 == s.parts.size() && exponent.bias == 0;
        for (const Sum::Part& part : exponent.parts) {
            bool found = false;
            for (const Sum::Part& other : s.parts) {
                found = found ||
                        (other.coefficient == part.coefficient && v.same(other.term, part.term));
            }
            same = same && found;
        }
        if (same) {
            return matched(v, *sums);
        }
    }
    return std::nullopt;
}

Values made(Site& s, const Match& m, bool log) {
    Type out = s.result();
    Graph& g = s.g();
    DType wide = wider(g.type(m.x).dtype, out.dtype);
    Value y = ops::softmax(g, ops::cast(g, m.x, wide), m.axis, log);
    return {ops::cast(g, y, out.dtype)};
}

bool fits(Site& s, const std::optional<Match>& m) {
    return m && s.g().type(m->x).dims == s.result().dims && is_float(s.g().type(m->x).dtype);
}

std::optional<Values> raise(Site& s) {
    if (!is_float(s.result().dtype)) {
        return std::nullopt;
    }
    View v(s.g());
    Term root = v.term(s.copied()[0]);
    if (auto m = match(v, root); fits(s, m)) {
        return made(s, *m, false);
    }
    if (auto m = match_log(v, root); fits(s, m)) {
        return made(s, *m, true);
    }
    return std::nullopt;
}

std::optional<Values> log_of_softmax(Site& s) {
    const Expr& body = s.as<Map>().body;
    if (!is_float(s.result().dtype) || body.code.back().op != ExprOp::Log) {
        return std::nullopt;
    }
    View v(s.g());
    const Node* n = v.node(v.arg(v.term(s.copied()[0]), 0), ops::softmax_def);
    if (n == nullptr || n->as<ops::Softmax>().log || s.uses(n->outputs[0]) > 1) {
        return std::nullopt;
    }
    Match m{n->inputs[0], n->as<ops::Softmax>().axis};
    return fits(s, m) ? std::optional(made(s, m, true)) : std::nullopt;
}

} // namespace

const Pass raise_softmax = {
    .name = "raise_softmax",
    .summary = "recognise softmax and its logarithm",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, log_of_softmax}, {&map_def, raise}};
            return apply_rules(g, Rules(rows), {&reduce_def, &ops::softmax_def});
        },
};

} // namespace ingot::passes
