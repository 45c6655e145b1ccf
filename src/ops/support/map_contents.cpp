// SPDX-License-Identifier: Apache-2.0
#include "ops/support/map_contents.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ingot {

namespace {

/// A size, a ratio of sizes, or nothing that is known.
using Known = std::optional<HostElement>;

HostElement reduced(Dim n, int64_t d) {
    while (d % 2 == 0 && n.is_const() && n.value() % 2 == 0) {
        n = n.value() / 2;
        d /= 2;
    }
    if (d != 1 && n.is_const() && n.value() % d == 0) {
        return {n.value() / d, 1};
    }
    if (d != 1 && !n.is_const()) {
        Dim q = floor_div(n, d);
        if (q * Dim(d) == n) {
            return {q, 1};
        }
    }
    return {std::move(n), d};
}

// A double as a fraction with a power-of-two denominator up to 2^20.
Known rational(double v) {
    int64_t d = 1;
    while (d < (1 << 20) && v != std::floor(v)) {
        v *= 2;
        d *= 2;
    }
    if (v != std::floor(v) || std::abs(v) > 9e15) {
        return std::nullopt;
    }
    return HostElement{static_cast<int64_t>(v), d};
}

Dim floor_of(const HostElement& e) {
    return floor_div(e.numerator, e.denominator);
}

// a - b as >= 0, < 0, or unknown.
Known compare(ExprOp op, const HostElement& a, const HostElement& b) {
    Interval d = (a.numerator * Dim(b.denominator) - b.numerator * Dim(a.denominator)).bounds();
    if (op == ExprOp::Eq) {
        return d == Interval{0, 0}         ? Known(HostElement{1, 1})
               : (d.low > 0 || d.high < 0) ? Known(HostElement{0, 1})
                                           : std::nullopt;
    }
    bool strict = op == ExprOp::Lt;
    if (strict ? d.high < 0 : d.high <= 0) {
        return HostElement{1, 1};
    }
    if (strict ? d.low >= 0 : d.low > 0) {
        return HostElement{0, 1};
    }
    return std::nullopt;
}

Known divide(const HostElement& a, const HostElement& b, bool fp) {
    if (b.numerator.is_const(0)) {
        return std::nullopt;
    }
    HostElement q;
    if (b.numerator.is_const()) {
        int64_t n = b.numerator.value();
        q = reduced(a.numerator * Dim(n < 0 ? -b.denominator : b.denominator),
                    a.denominator * (n < 0 ? -n : n));
    } else {
        if (a.denominator != 1 || b.denominator != 1) {
            return std::nullopt;
        }
        Dim d = floor_div(a.numerator, b.numerator);
        if (!(d * b.numerator == a.numerator) && (fp || b.numerator.bounds().low < 0)) {
            return std::nullopt;
        }
        q = {d, 1};
    }
    if (fp) {
        return q;
    }
    if (q.denominator != 1 && q.numerator.bounds().low < 0) { // C++ truncates towards zero
        return q.numerator.is_const() ? Known(HostElement{q.numerator.value() / q.denominator, 1})
                                      : std::nullopt;
    }
    return HostElement{floor_of(q), 1};
}

Known host_cast(const HostElement& a, DType from, DType to) {
    if (is_float(to)) {
        return a;
    }
    if (to == DType::Bool) {
        Known zero = compare(ExprOp::Eq, a, {0, 1});
        return zero ? Known(HostElement{1 - zero->numerator.value(), 1}) : std::nullopt;
    }
    if (bit_width(to) < 32 && !a.numerator.is_const()) {
        return std::nullopt;
    }
    if (!is_float(from) || a.denominator == 1) {
        return a;
    }
    if (a.numerator.bounds().low >= 0) {
        return HostElement{floor_of(a), 1};
    }
    return a.numerator.is_const() ? Known(HostElement{a.numerator.value() / a.denominator, 1})
                                  : std::nullopt;
}

Known host_arith(ExprOp op, DType type, const HostElement& a, const HostElement& b) {
    int64_t da = a.denominator;
    int64_t db = b.denominator;
    bool fp = is_float(type);
    if (da > (1 << 20) || db > (1 << 20)) {
        return std::nullopt;
    }
    switch (op) {
    case ExprOp::Add:
        return reduced(a.numerator * Dim(db) + b.numerator * Dim(da), da * db);
    case ExprOp::Sub:
        return reduced(a.numerator * Dim(db) - b.numerator * Dim(da), da * db);
    case ExprOp::Mul:
        return reduced(a.numerator * b.numerator, da * db);
    case ExprOp::Div:
        return divide(a, b, fp);
    case ExprOp::Mod:
        return da == 1 && db == 1 && b.numerator.bounds().low > 0
                   ? Known(HostElement{mod(a.numerator, b.numerator), 1})
                   : std::nullopt;
    case ExprOp::Min:
        return da == db ? Known(reduced(min(a.numerator, b.numerator), da)) : std::nullopt;
    case ExprOp::Max:
        return da == db ? Known(reduced(max(a.numerator, b.numerator), da)) : std::nullopt;
    case ExprOp::Neg:
        return HostElement{Dim(0) - a.numerator, da};
    case ExprOp::Floor:
        return HostElement{floor_of(a), 1};
    case ExprOp::Ceil:
        return HostElement{ceil_div(a.numerator, a.denominator), 1};
    case ExprOp::Trunc:
        return host_cast(a, DType::F64, DType::I64);
    case ExprOp::Eq:
    case ExprOp::Lt:
    case ExprOp::Le:
        return compare(op, a, b);
    case ExprOp::Not:
    case ExprOp::And:
    case ExprOp::Or:
        if (type == DType::Bool && a.numerator.is_const() && b.numerator.is_const()) {
            bool x = a.numerator.value() != 0;
            bool y = b.numerator.value() != 0;
            return HostElement{(op == ExprOp::Not   ? !x
                                : op == ExprOp::And ? x && y
                                                    : x || y)
                                   ? 1
                                   : 0,
                               1};
        }
        return std::nullopt;
    default:
        return std::nullopt;
    }
}

/// False if host_scalar() knows no element, whatever those of the operands with contents are.
bool may_be_known(const Expr& e, std::span<const HostRef> in) {
    std::vector<char> known(e.code.size());
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        auto arg = [&](size_t k) { return known[static_cast<size_t>(c.args[k])] != 0; };
        bool may = true;
        switch (c.op) {
        case ExprOp::In:
            may = in[static_cast<size_t>(c.args[0])] != nullptr;
            break;
        case ExprOp::Const:
            break;
        case ExprOp::Select:
            may = arg(0) ? arg(1) || arg(2) : arg(1) && arg(2);
            break;
        default:
            may = arg(0) && (arity(c.op) < 2 || arg(1));
        }
        known[n] = may ? 1 : 0;
    }
    return known.back() != 0;
}

/// `v` has the value of each instruction afterwards.
Known host_scalar(const Expr& e, std::span<const Known> in, std::vector<Known>& v) {
    v.assign(e.code.size(), std::nullopt);
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        auto arg = [&](size_t k) -> const Known& { return v[static_cast<size_t>(c.args[k])]; };
        switch (c.op) {
        case ExprOp::In:
            v[n] = in[static_cast<size_t>(c.args[0])];
            break;
        case ExprOp::Const:
            v[n] = is_float(c.type) ? rational(std::bit_cast<double>(c.imm))
                                    : Known(HostElement{c.imm, 1});
            break;
        case ExprOp::Select:
            if (arg(0) && arg(0)->numerator.is_const()) {
                v[n] = arg(arg(0)->numerator.is_const(0) ? 2 : 1);
            } else if (arg(1) && arg(1) == arg(2)) {
                v[n] = arg(1);
            }
            break;
        case ExprOp::Cast:
            if (arg(0)) {
                v[n] = host_cast(*arg(0), e.code[static_cast<size_t>(c.args[0])].type, c.to);
            }
            break;
        default: {
            size_t second = arity(c.op) > 1 ? 1 : 0;
            if (arg(0) && arg(second)) {
                v[n] = host_arith(c.op, e.code[static_cast<size_t>(c.args[0])].type, *arg(0),
                                  *arg(second));
            }
        }
        }
    }
    return v.back();
}

// The index in an operand of shape `from` that element `i` of the broadcast shape reads.
size_t broadcast_index(int64_t i, const Shape& shape, const Shape& from) {
    int64_t index = 0;
    int64_t stride = 1;
    for (size_t d = 0; d < from.size(); ++d) {
        int64_t size = from[from.size() - 1 - d];
        int64_t extent = shape[shape.size() - 1 - d];
        index += size == 1 ? 0 : i % extent * stride;
        stride *= size;
        i /= extent;
    }
    return static_cast<size_t>(index);
}

} // namespace

std::vector<HostRef> host_map(const Map& a, std::span<const HostRef> in,
                              std::span<const Type> out) {
    auto shape = as_const(out[0].dims);
    if (!shape || count_of(*shape) > 1024) {
        return {};
    }
    auto has_contents = [](const HostRef& h) { return h != nullptr; };
    if (std::none_of(in.begin(), in.end(), has_contents) || !may_be_known(a.body, in)) {
        return {};
    }
    auto r = std::make_shared<HostValue>();
    r->shape = *shape;
    std::vector<Known> elements;
    std::vector<Known> steps;
    for (int64_t i = 0; i < count_of(*shape); ++i) {
        elements.clear();
        for (const HostRef& h : in) {
            elements.push_back(h == nullptr ? std::nullopt
                                            : h->elements[broadcast_index(i, *shape, h->shape)]);
        }
        try {
            r->elements.push_back(host_scalar(a.body, elements, steps));
        } catch (const Error&) { // beyond the range of sizes, such as INT64_MAX + N
            r->elements.emplace_back(std::nullopt);
        }
    }
    return {r};
}

} // namespace ingot
