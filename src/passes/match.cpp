// SPDX-License-Identifier: Apache-2.0
#include "passes/match.h"

#include "ops/primitives.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ingot::passes {

namespace {

constexpr int max_depth = 32;
constexpr size_t max_terms = 16; // a pattern needs few factors; products of products have many

bool is_small_float(DType t) {
    return t == DType::F16 || t == DType::BF16 || t == DType::F32;
}

} // namespace

bool nearly(double a, double b, double relative) {
    return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

bool take(const View& view, std::vector<Term>& terms, Term t) {
    for (size_t i = 0; i < terms.size(); ++i) {
        if (view.same(terms[i], t)) {
            terms.erase(terms.begin() + static_cast<int64_t>(i));
            return true;
        }
    }
    return false;
}

int View::last(Value v) const {
    const Node* n = g_.producer(v);
    return n != nullptr && n->is(map_def) ? static_cast<int>(n->as<Map>().body.code.size()) - 1
                                          : -1;
}

const ExprInstr& View::code(Term t) const {
    return g_.producer(t.value)->as<Map>().body.code[static_cast<size_t>(t.instr)];
}

// Walks from an input of a map to its producer, past conversions and repetitions.
Term View::resolve(Term t) const {
    for (;;) {
        if (t.instr < 0) {
            const Node* n = g_.producer(t.value);
            if (n == nullptr || !n->is(broadcast_def)) {
                return t;
            }
            t = {n->inputs[0], last(n->inputs[0])};
            continue;
        }
        const ExprInstr& c = code(t);
        const Node& n = *g_.producer(t.value);
        if (c.op == ExprOp::In) {
            Value v = n.inputs[static_cast<size_t>(c.args[0])];
            t = {v, last(v)};
        } else if (c.op == ExprOp::Cast && is_small_float(c.to) &&
                   code({t.value, c.args[0]}).type == DType::F32) {
            t.instr = c.args[0];
        } else {
            return t;
        }
    }
}

ExprOp View::op(Term t) const {
    return t.instr < 0 ? ExprOp::In : code(t).op;
}

Term View::arg(Term t, int k) const {
    return resolve({t.value, code(t).args[static_cast<size_t>(k)]});
}

std::optional<Value> View::leaf(Term t) const {
    return t.instr < 0 ? std::optional(t.value) : std::nullopt;
}

std::optional<Value> View::value(Term t) const {
    return t.instr < 0 || t.instr == last(t.value) ? std::optional(t.value) : std::nullopt;
}

std::optional<double> View::number(Term t) const {
    if (t.instr >= 0) {
        const ExprInstr& c = code(t);
        if (c.op != ExprOp::Const) {
            return std::nullopt;
        }
        return is_float(c.type) ? std::bit_cast<double>(c.imm) : static_cast<double>(c.imm);
    }
    const Tensor* c = g_.constant(t.value);
    if (c == nullptr || c->count() == 0 || c->count() > 4096) {
        return std::nullopt;
    }
    for (int64_t i = 1; i < c->count(); ++i) {
        if (c->get_f64(i) != c->get_f64(0)) {
            return std::nullopt;
        }
    }
    return c->get_f64(0);
}

bool View::is_number(Term t, double v, double relative) const {
    auto n = number(t);
    return n && nearly(*n, v, relative);
}

bool View::same(Term a, Term b, int depth) const {
    if (a.value == b.value && a.instr == b.instr) {
        return true;
    }
    if (a.instr < 0 || b.instr < 0 || depth == 0) {
        auto x = number(a);
        return x && x == number(b);
    }
    const ExprInstr& x = code(a);
    const ExprInstr& y = code(b);
    if (x.op != y.op || x.type != y.type || x.imm != y.imm || x.to != y.to) {
        return false;
    }
    for (int k = 0; k < arity(x.op); ++k) {
        if (!same(arg(a, k), arg(b, k), depth - 1)) {
            return false;
        }
    }
    return true;
}

void View::multiply(Term t, Product& p, const std::vector<Term>& whole, bool under,
                    int depth) const {
    if (auto n = number(t)) {
        p.scale = under ? p.scale / *n : p.scale * *n;
        return;
    }
    bool opaque = depth == max_depth || p.num.size() + p.den.size() >= max_terms;
    for (Term w : whole) {
        opaque = opaque || same(t, w);
    }
    ExprOp o = opaque ? ExprOp::In : op(t);
    if (o == ExprOp::Mul || o == ExprOp::Div) {
        multiply(arg(t, 0), p, whole, under, depth + 1);
        return multiply(arg(t, 1), p, whole, o == ExprOp::Div ? !under : under, depth + 1);
    }
    if (o == ExprOp::Neg) {
        p.scale = -p.scale;
        return multiply(arg(t, 0), p, whole, under, depth + 1);
    }
    auto power = o == ExprOp::Pow ? number(arg(t, 1)) : std::nullopt;
    if (power && (*power == 2 || *power == 3)) {
        for (int i = 0; i < static_cast<int>(*power); ++i) {
            multiply(arg(t, 0), p, whole, under, depth + 1);
        }
        return;
    }
    if (power && *power == -1) {
        return multiply(arg(t, 0), p, whole, !under, depth + 1);
    }
    (under ? p.den : p.num).push_back(t);
}

Product View::product(Term t, const std::vector<Term>& whole) const {
    Product p;
    multiply(t, p, whole, false, 0);
    return p;
}

View::Scaled View::scaled(Term t) const {
    Scaled s{1, t};
    for (int depth = 0; depth < max_depth; ++depth) {
        ExprOp o = op(s.term);
        bool divides = o == ExprOp::Div;
        if (o == ExprOp::Neg) {
            s = {-s.scale, arg(s.term, 0)};
        } else if (auto n = o == ExprOp::Mul || divides ? number(arg(s.term, 1)) : std::nullopt) {
            s = {divides ? s.scale / *n : s.scale * *n, arg(s.term, 0)};
        } else if (auto m = o == ExprOp::Mul ? number(arg(s.term, 0)) : std::nullopt) {
            s = {s.scale * *m, arg(s.term, 1)};
        } else {
            break;
        }
    }
    return s;
}

std::optional<Term> View::square_of(Term t) const {
    if (is(t, ExprOp::Mul) && same(arg(t, 0), arg(t, 1))) {
        return arg(t, 0);
    }
    if (is(t, ExprOp::Pow) && is_number(arg(t, 1), 2)) {
        return arg(t, 0);
    }
    return std::nullopt;
}

void View::add(Term t, double coefficient, Sum& s, int depth) const {
    if (auto n = number(t)) {
        s.bias += coefficient * *n;
        return;
    }
    ExprOp o = op(t);
    if (depth < max_depth && s.parts.size() < max_terms) {
        if (o == ExprOp::Add || o == ExprOp::Sub) {
            add(arg(t, 0), coefficient, s, depth + 1);
            return add(arg(t, 1), o == ExprOp::Sub ? -coefficient : coefficient, s, depth + 1);
        }
        if (o == ExprOp::Neg) {
            return add(arg(t, 0), -coefficient, s, depth + 1);
        }
        for (int k = 0; o == ExprOp::Mul && k < 2; ++k) {
            if (auto n = number(arg(t, k))) {
                return add(arg(t, 1 - k), coefficient * *n, s, depth + 1);
            }
        }
        auto divisor = o == ExprOp::Div ? number(arg(t, 1)) : std::nullopt;
        if (divisor && *divisor != 0) {
            return add(arg(t, 0), coefficient / *divisor, s, depth + 1);
        }
    }
    s.parts.push_back({t, coefficient});
}

Sum View::sum(Term t) const {
    Sum s;
    add(t, 1, s, 0);
    return s;
}

std::optional<Term> View::root_of(Term t) const {
    if (is(t, ExprOp::Sqrt)) {
        return arg(t, 0);
    }
    if (is(t, ExprOp::Pow) && is_number(arg(t, 1), 0.5)) {
        return arg(t, 0);
    }
    return std::nullopt;
}

const Node* View::node(Term t, const OpDef& def) const {
    auto v = leaf(t);
    const Node* n = v ? g_.producer(*v) : nullptr;
    return n != nullptr && n->is(def) ? n : nullptr;
}

bool converts_floats(const Graph& g, const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 1) {
        return false;
    }
    const auto& code = n.as<Map>().body.code;
    bool casts = std::all_of(code.begin(), code.end(), [](const ExprInstr& i) {
        return i.op == ExprOp::In || i.op == ExprOp::Cast;
    });
    return casts && is_float(g.type(n.inputs[0]).dtype) && is_float(g.type(n.outputs[0]).dtype);
}

bool is_addition(const Node& n) {
    if (!n.is(map_def) || n.inputs.size() != 2) {
        return false;
    }
    const auto& code = n.as<Map>().body.code;
    auto reads = [&code](size_t i) {
        return code[i].op == ExprOp::In && code[i].type == DType::F32;
    };
    return code.size() == 3 && reads(0) && reads(1) && code[0].args[0] != code[1].args[0] &&
           code[2].op == ExprOp::Add && code[2].args[0] != code[2].args[1];
}

} // namespace ingot::passes
