// SPDX-License-Identifier: Apache-2.0
#include "ir/dim.h"

#include "base/checked.h"
#include "base/error.h"
#include "ir/dim_poly.h"

#include <algorithm>

namespace ingot {

int64_t mul_or_fail(int64_t a, int64_t b) {
    auto r = checked_mul(a, b);
    if (!r) {
        refuse(RefusalKind::Size, "size arithmetic overflows: ", a, " * ", b);
    }
    return *r;
}

int64_t add_or_fail(int64_t a, int64_t b) {
    auto r = checked_add(a, b);
    if (!r) {
        refuse(RefusalKind::Size, "size arithmetic overflows: ", a, " + ", b);
    }
    return *r;
}

int64_t floor_div_int(int64_t a, int64_t b) {
    require(b != 0, ErrorCode::InvalidArgument, "size arithmetic divides ", a, " by zero");
    if (b == -1) {
        return mul_or_fail(a, -1);
    }
    int64_t q = a / b;
    return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

namespace {

// Limits that no model needs: a hostile one would fill memory and time.
constexpr size_t max_terms = 256;
constexpr size_t max_degree = 64;
constexpr size_t max_operands = 256; // of a minimum or maximum
constexpr size_t max_text = 1U << 16U;

int compare_factors(const Term& x, const Term& y) {
    if (x.factors.size() != y.factors.size()) {
        return x.factors.size() > y.factors.size() ? -1 : 1;
    }
    for (size_t i = 0; i < x.factors.size(); ++i) {
        int c = x.factors[i]->key.compare(y.factors[i]->key);
        if (c != 0) {
            return c;
        }
    }
    return 0;
}

std::string print(const Dim::Poly& p) {
    std::string out;
    for (const Term& t : p.terms) {
        if (!out.empty() && t.coefficient > 0) {
            out += '+';
        }
        bool first = true;
        if (t.coefficient == -1) {
            out += '-';
        } else if (t.coefficient != 1) {
            append(out, t.coefficient);
            first = false;
        }
        for (const AtomPtr& f : t.factors) {
            if (!first) {
                out += '*';
            }
            first = false;
            out += f->key;
        }
    }
    if (p.constant != 0) {
        if (p.constant > 0) {
            out += '+';
        }
        append(out, p.constant);
    }
    return out;
}

Dim::Poly poly_of(const Dim& d, const Dim::Poly* p) {
    if (p != nullptr) {
        return *p;
    }
    Dim::Poly r;
    r.constant = d.value();
    return r;
}

void add_term(Dim::Poly& p, Term t) {
    if (t.coefficient == 0) {
        return;
    }
    if (t.factors.size() > max_degree) {
        refuse(RefusalKind::Size, "a size expression is a product of more than ", max_degree,
               " factors");
    }
    auto at = std::lower_bound(p.terms.begin(), p.terms.end(), t, [](const Term& x, const Term& y) {
        return compare_factors(x, y) < 0;
    });
    if (at != p.terms.end() && compare_factors(*at, t) == 0) {
        at->coefficient = add_or_fail(at->coefficient, t.coefficient);
        if (at->coefficient == 0) {
            p.terms.erase(at);
        }
        return;
    }
    p.terms.insert(at, std::move(t));
    if (p.terms.size() > max_terms) {
        refuse(RefusalKind::Size, "a size expression has more than ", max_terms, " terms");
    }
}

Dim::Poly single_atom(AtomKind kind, std::string key, Dim a, Dim b) {
    auto atom = std::make_shared<Atom>();
    atom->kind = kind;
    atom->key = std::move(key);
    atom->a = std::move(a);
    atom->b = std::move(b);
    Dim::Poly p;
    p.terms.push_back(Term{1, {atom}});
    return p;
}

// a / monomial, when every term of `a` is a multiple of it.
std::optional<Dim::Poly> divide_exactly(const Dim::Poly& a, const Term& by) {
    if (a.constant != 0) {
        return std::nullopt;
    }
    Dim::Poly out;
    for (const Term& t : a.terms) {
        if (t.coefficient % by.coefficient != 0) {
            return std::nullopt;
        }
        Term q{t.coefficient / by.coefficient, t.factors};
        for (const AtomPtr& f : by.factors) {
            auto at = std::find_if(q.factors.begin(), q.factors.end(),
                                   [&](const AtomPtr& g) { return g->key == f->key; });
            if (at == q.factors.end()) {
                return std::nullopt;
            }
            q.factors.erase(at);
        }
        if (q.factors.empty()) {
            out.constant = add_or_fail(out.constant, q.coefficient);
        } else {
            add_term(out, std::move(q));
        }
    }
    return out;
}

} // namespace

Dim Dim::from_poly(Poly p) {
    if (p.terms.empty()) {
        return Dim(p.constant);
    }
    p.key = print(p);
    if (p.key.size() > max_text) {
        refuse(RefusalKind::Size, "a size expression has more than ", max_text,
               " characters: ", p.key.substr(0, 40), "...");
    }
    return Dim(std::make_shared<const Poly>(std::move(p)));
}

Dim Dim::symbol(std::string_view name) {
    CHECK(!name.empty(), "a symbol needs a name");
    return from_poly(single_atom(AtomKind::Symbol, std::string(name), 0, 0));
}

int64_t Dim::value() const {
    CHECK(is_const(), "Dim::value of ", poly_ ? poly_->key : "");
    return value_;
}

std::string_view Dim::symbol_name() const {
    if (poly_ == nullptr || poly_->constant != 0 || poly_->terms.size() != 1) {
        return {};
    }
    const Term& t = poly_->terms[0];
    if (t.coefficient != 1 || t.factors.size() != 1 || t.factors[0]->kind != AtomKind::Symbol) {
        return {};
    }
    return t.factors[0]->key;
}

bool Dim::operator==(const Dim& o) const {
    if (is_const() || o.is_const()) {
        return is_const() && o.is_const() && value_ == o.value_;
    }
    return poly_ == o.poly_ || poly_->key == o.poly_->key;
}

bool Dim::operator<(const Dim& o) const {
    if (is_const() && o.is_const()) {
        return value_ < o.value_;
    }
    return to_text(*this) < to_text(o);
}

Dim operator+(const Dim& a, const Dim& b) {
    if (a.is_const() && b.is_const()) {
        return add_or_fail(a.value_, b.value_);
    }
    Dim::Poly p = poly_of(a, a.poly_.get());
    const Dim::Poly q = poly_of(b, b.poly_.get());
    p.constant = add_or_fail(p.constant, q.constant);
    for (const Term& t : q.terms) {
        add_term(p, t);
    }
    return Dim::from_poly(std::move(p));
}

Dim operator-(const Dim& a, const Dim& b) {
    return a + Dim(-1) * b;
}

Dim operator*(const Dim& a, const Dim& b) {
    if (a.is_const() && b.is_const()) {
        return mul_or_fail(a.value_, b.value_);
    }
    const Dim::Poly p = poly_of(a, a.poly_.get());
    const Dim::Poly q = poly_of(b, b.poly_.get());
    Dim::Poly out;
    out.constant = mul_or_fail(p.constant, q.constant);
    auto scale = [&out](const Dim::Poly& x, int64_t by) {
        for (const Term& t : x.terms) {
            add_term(out, Term{mul_or_fail(t.coefficient, by), t.factors});
        }
    };
    scale(p, q.constant);
    scale(q, p.constant);
    for (const Term& x : p.terms) {
        for (const Term& y : q.terms) {
            Term t{mul_or_fail(x.coefficient, y.coefficient), x.factors};
            t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
            std::sort(t.factors.begin(), t.factors.end(),
                      [](const AtomPtr& f, const AtomPtr& g) { return f->key < g->key; });
            add_term(out, std::move(t));
        }
    }
    return Dim::from_poly(std::move(out));
}

Dim floor_div(const Dim& a, const Dim& b) {
    if (a.is_const() && b.is_const()) {
        return floor_div_int(a.value_, b.value_);
    }
    if (b.is_const(1)) {
        return a;
    }
    if (b.is_const(-1)) { // INT64_MIN % -1 ends the process
        return a * b;
    }
    const Dim::Poly p = poly_of(a, a.poly_.get());
    if (b.is_const()) {
        require(b.value_ != 0, ErrorCode::InvalidArgument, "size ", to_text(a), " divided by zero");
        // Terms divisible by b leave the division: floor((b*q + r) / b) = q + floor(r / b).
        Dim::Poly whole;
        Dim::Poly rest;
        for (const Term& t : p.terms) {
            if (t.coefficient % b.value_ == 0) {
                add_term(whole, Term{t.coefficient / b.value_, t.factors});
            } else {
                add_term(rest, t);
            }
        }
        int64_t q = floor_div_int(p.constant, b.value_);
        whole.constant = q;
        rest.constant = p.constant - q * b.value_;
        if (rest.terms.empty()) {
            return Dim::from_poly(std::move(whole));
        }
        const Term& t = rest.terms[0];
        bool nested = b.value_ > 0 && rest.terms.size() == 1 && t.coefficient == 1 &&
                      t.factors.size() == 1 && t.factors[0]->kind == AtomKind::FloorDiv &&
                      t.factors[0]->b.is_const() && t.factors[0]->b.value_ > 0;
        if (nested) { // floor((floor(x/c) + k) / b) = floor((x + k*c) / (b*c))
            const Dim& c = t.factors[0]->b;
            return Dim::from_poly(std::move(whole)) +
                   floor_div(t.factors[0]->a + c * Dim(rest.constant), c * b);
        }
        Dim r = Dim::from_poly(std::move(rest));
        std::string key = str("floordiv(", r, ",", b, ")");
        return Dim::from_poly(std::move(whole)) +
               Dim::from_poly(single_atom(AtomKind::FloorDiv, std::move(key), r, b));
    }
    if (a == b) {
        return 1;
    }
    if (b.poly_->terms.size() == 1 && b.poly_->constant == 0) {
        if (auto q = divide_exactly(p, b.poly_->terms[0])) {
            return Dim::from_poly(std::move(*q));
        }
    }
    return Dim::from_poly(single_atom(AtomKind::FloorDiv, str("floordiv(", a, ",", b, ")"), a, b));
}

namespace {

// The operands of nested minima or maxima; d itself where it is not one.
Dims operands(const Dim& d, AtomKind kind) {
    const Dim::Poly* p = Dim::Poly::of(d);
    bool one = p != nullptr && p->constant == 0 && p->terms.size() == 1 &&
               p->terms[0].coefficient == 1 && p->terms[0].factors.size() == 1 &&
               p->terms[0].factors[0]->kind == kind;
    if (!one) {
        return {d};
    }
    const Atom& atom = *p->terms[0].factors[0];
    Dims out = operands(atom.a, kind);
    Dims more = operands(atom.b, kind);
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

// Whether x <= y for all values of the symbols, as far as bounds and nesting can prove.
bool at_most(const Dim& x, const Dim& y) {
    auto below = [](const Dim& a, const Dim& b) { return (a - b).bounds().high <= 0; };
    auto below_y = [&](const Dim& d) { return below(d, y); };
    auto above_x = [&](const Dim& d) { return below(x, d); };
    auto any = [](const Dims& dims, auto f) { return std::any_of(dims.begin(), dims.end(), f); };
    auto all = [](const Dims& dims, auto f) { return std::all_of(dims.begin(), dims.end(), f); };
    return any(operands(x, AtomKind::Min), below_y) || all(operands(x, AtomKind::Max), below_y) ||
           any(operands(y, AtomKind::Max), above_x) || all(operands(y, AtomKind::Min), above_x);
}

// The operands of a and b but those that can never decide the result; of equal ones the first
// stays. Those of one side decide nothing about each other: they went through here when it was
// made.
Dims extremes(const Dim& a, const Dim& b, AtomKind kind) {
    auto decides = [kind](const Dim& x, const Dim& y) {
        if (!x.symbol_name().empty() && !y.symbol_name().empty()) {
            return x == y; // nothing is known of different ones
        }
        return kind == AtomKind::Max ? at_most(y, x) : at_most(x, y);
    };
    const Dims first = operands(a, kind);
    const Dims second = operands(b, kind);
    Dims kept;
    for (const Dim& x : first) {
        bool dominated = std::any_of(second.begin(), second.end(),
                                     [&](const Dim& y) { return decides(y, x) && !decides(x, y); });
        if (!dominated) {
            kept.push_back(x);
        }
    }
    for (const Dim& y : second) {
        bool dominated =
            std::any_of(first.begin(), first.end(), [&](const Dim& x) { return decides(x, y); });
        if (!dominated) {
            kept.push_back(y);
        }
    }
    if (kept.size() > max_operands) {
        refuse(RefusalKind::Size, "a size is the ", kind == AtomKind::Max ? "largest" : "smallest",
               " of more than ", max_operands, " expressions");
    }
    std::sort(kept.begin(), kept.end());
    return kept;
}

} // namespace

Dim min(const Dim& a, const Dim& b) {
    Dims all = extremes(a, b, AtomKind::Min);
    Dim d = all.back();
    for (size_t i = all.size() - 1; i-- > 0;) {
        d = Dim::from_poly(single_atom(AtomKind::Min, str("min(", all[i], ",", d, ")"), all[i], d));
    }
    return d;
}

Dim max(const Dim& a, const Dim& b) {
    Dims all = extremes(a, b, AtomKind::Max);
    Dim d = all.back();
    for (size_t i = all.size() - 1; i-- > 0;) {
        d = Dim::from_poly(single_atom(AtomKind::Max, str("max(", all[i], ",", d, ")"), all[i], d));
    }
    return d;
}

Dim ceil_div(const Dim& a, const Dim& b) {
    return Dim(0) - floor_div(Dim(0) - a, b);
}

Dim mod(const Dim& a, const Dim& b) {
    return a - b * floor_div(a, b);
}

std::string to_text(const Dim& d) {
    return d.is_const() ? str(d.value()) : d.poly_->key;
}

} // namespace ingot
