// SPDX-License-Identifier: Apache-2.0
// Values, bounds and symbols of a Dim.
#include "base/checked.h"
#include "base/error.h"
#include "ir/dim_poly.h"

#include <algorithm>
#include <array>

namespace ingot {

namespace {

std::optional<int64_t> eval_atom(const Atom& atom, const Symbols& symbols) {
    if (atom.kind == AtomKind::Symbol) {
        auto it = symbols.find(atom.key);
        return it == symbols.end() ? std::nullopt : std::optional(it->second);
    }
    auto a = atom.a.try_eval(symbols);
    auto b = atom.b.try_eval(symbols);
    if (!a || !b) {
        return std::nullopt;
    }
    switch (atom.kind) {
    case AtomKind::FloorDiv:
        return floor_div_int(*a, *b);
    case AtomKind::Min:
        return std::min(*a, *b);
    case AtomKind::Max:
        return std::max(*a, *b);
    case AtomKind::Symbol:
        break;
    }
    return std::nullopt;
}

// Interval arithmetic that saturates: INT64_MIN and INT64_MAX mean unbounded.
int64_t saturating_mul(int64_t a, int64_t b) {
    return checked_mul(a, b).value_or(((a < 0) != (b < 0)) ? INT64_MIN : INT64_MAX);
}

Interval mul(Interval x, Interval y) {
    std::array<int64_t, 4> p = {saturating_mul(x.low, y.low), saturating_mul(x.low, y.high),
                                saturating_mul(x.high, y.low), saturating_mul(x.high, y.high)};
    return {*std::min_element(p.begin(), p.end()), *std::max_element(p.begin(), p.end())};
}

int64_t saturating_add(int64_t a, int64_t b) {
    if (a == INT64_MIN || b == INT64_MIN) {
        return INT64_MIN;
    }
    if (a == INT64_MAX || b == INT64_MAX) {
        return INT64_MAX;
    }
    return checked_add(a, b).value_or(a < 0 ? INT64_MIN : INT64_MAX);
}

Interval floor_div_bounds(Interval a, Interval b) {
    if (b.low <= 0) {
        return {INT64_MIN, INT64_MAX};
    }
    auto div = [](int64_t x, int64_t y) {
        return (x == INT64_MIN || x == INT64_MAX) ? x : floor_div_int(x, y);
    };
    return {a.low >= 0 ? div(a.low, b.high) : div(a.low, b.low),
            a.high >= 0 ? div(a.high, b.low) : div(a.high, b.high)};
}

Interval atom_bounds(const Atom& atom, const Bounds& bounds) {
    if (atom.kind == AtomKind::Symbol) {
        auto it = bounds.find(atom.key);
        if (it != bounds.end()) {
            return it->second;
        }
        return atom.key[0] == '~' ? Interval{INT64_MIN, INT64_MAX} : Interval{};
    }
    Interval a = atom.a.bounds(bounds);
    Interval b = atom.b.bounds(bounds);
    if (atom.kind == AtomKind::Min) {
        return {std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    if (atom.kind == AtomKind::Max) {
        return {std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    return floor_div_bounds(a, b);
}

} // namespace

std::optional<int64_t> Dim::try_eval(const Symbols& symbols) const {
    if (is_const()) {
        return value_;
    }
    int64_t sum = poly_->constant;
    for (const Term& t : poly_->terms) {
        int64_t p = t.coefficient;
        for (const AtomPtr& f : t.factors) {
            auto v = eval_atom(*f, symbols);
            if (!v) {
                return std::nullopt;
            }
            p = mul_or_fail(p, *v);
        }
        sum = add_or_fail(sum, p);
    }
    return sum;
}

int64_t Dim::eval(const Symbols& symbols) const {
    auto v = try_eval(symbols);
    if (!v) {
        std::set<std::string, std::less<>> names;
        collect_symbols(names);
        for (const std::string& n : names) {
            require(symbols.contains(n), ErrorCode::InvalidArgument, "size '", to_text(*this),
                    "' needs '", n, "', which has no value yet");
        }
    }
    return *v;
}

void Dim::collect_symbols(std::set<std::string, std::less<>>& out) const {
    if (is_const()) {
        return;
    }
    for (const Term& t : poly_->terms) {
        for (const AtomPtr& f : t.factors) {
            if (f->kind == AtomKind::Symbol) {
                out.insert(f->key);
            } else {
                f->a.collect_symbols(out);
                f->b.collect_symbols(out);
            }
        }
    }
}

bool Dim::has_symbol(std::string_view name) const {
    std::set<std::string, std::less<>> all;
    collect_symbols(all);
    return all.find(name) != all.end();
}

Dim Dim::substitute(const std::function<std::optional<Dim>(std::string_view)>& f) const {
    if (is_const()) {
        return *this;
    }
    Dim sum = poly_->constant;
    for (const Term& t : poly_->terms) {
        Dim p = t.coefficient;
        for (const AtomPtr& atom : t.factors) {
            if (atom->kind == AtomKind::Symbol) {
                auto r = f(atom->key);
                p = p * (r ? *r : Dim::symbol(atom->key));
                continue;
            }
            Dim a = atom->a.substitute(f);
            Dim b = atom->b.substitute(f);
            p = p * (atom->kind == AtomKind::FloorDiv ? floor_div(a, b)
                     : atom->kind == AtomKind::Min    ? min(a, b)
                                                      : max(a, b));
        }
        sum = sum + p;
    }
    return sum;
}

Interval Dim::bounds(const Bounds& bounds) const {
    if (is_const()) {
        return {value_, value_};
    }
    Interval sum{poly_->constant, poly_->constant};
    for (const Term& t : poly_->terms) {
        Interval p{t.coefficient, t.coefficient};
        for (const AtomPtr& f : t.factors) {
            p = mul(p, atom_bounds(*f, bounds));
        }
        sum = {saturating_add(sum.low, p.low), saturating_add(sum.high, p.high)};
    }
    return sum;
}

} // namespace ingot
