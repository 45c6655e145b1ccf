// SPDX-License-Identifier: Apache-2.0
#include "passes/expr_rules.h"

#include "base/hash.h"
#include "passes/index_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace ingot::passes {

namespace {

struct FloatShape {
    int mantissa;     // bits of precision, including the hidden one
    int min_exponent; // of the smallest subnormal
    int max_exponent;
};

FloatShape shape_of(DType t) {
    switch (t) {
    case DType::F4E2M1:
        return {2, -1, 2};
    case DType::F8E4M3:
        return {4, -9, 8};
    case DType::F8E5M2:
        return {3, -16, 15};
    case DType::BF16:
        return {8, -133, 127};
    case DType::F16:
        return {11, -24, 15};
    case DType::F32:
        return {24, -149, 127};
    default:
        return {53, -1074, 1023};
    }
}

int value_bits(DType t) {
    return t == DType::Bool ? 1 : is_signed(t) ? bit_width(t) - 1 : bit_width(t);
}

bool is_integral(ExprOp op) {
    return op == ExprOp::Floor || op == ExprOp::Ceil || op == ExprOp::Round || op == ExprOp::Trunc;
}

bool is_idempotent(ExprOp op) {
    return is_integral(op) || op == ExprOp::Abs || op == ExprOp::Sign;
}

class Simplifier {
public:
    Simplifier(const Expr& e, std::span<const InputFacts> inputs, DType result)
        : old_(e), inputs_(inputs), result_(result) {}

    Expr run() {
        std::vector<int> at(old_.code.size());
        new_.code.reserve(at.size());
        holds_.reserve(at.size());
        ranges_.reserve(at.size());
        for (size_t i = 0; i < at.size(); ++i) {
            const ExprInstr& c = old_.code[i];
            auto arg = [&](size_t k) { return at[static_cast<size_t>(c.args[k])]; };
            if (c.op == ExprOp::In) {
                at[i] = make_in(c.args[0]);
            } else if (c.op == ExprOp::Const) {
                at[i] = track(push_constant(c), c.type);
            } else if (c.op == ExprOp::Cast) {
                at[i] = cast(arg(0), c.to, c.imm != 0);
            } else if (c.op == ExprOp::Select) {
                at[i] = select(arg(0), arg(1), arg(2));
            } else if (arity(c.op) == 1) {
                at[i] = unary(c.op, arg(0));
            } else {
                at[i] = binary(c.op, arg(0), arg(1));
            }
        }
        return reachable(drop_last_cast(at.back()));
    }

private:
    const ExprInstr& code(int i) const { return new_.code[static_cast<size_t>(i)]; }
    bool is(int i, ExprOp op) const { return code(i).op == op; }
    int arg(int i, size_t k) const { return code(i).args[k]; }
    bool is_const(int i) const { return is(i, ExprOp::Const); }
    bool fp(int i) const { return is_float(code(i).type); }
    bool is_number(int i, double v) const {
        if (!is_const(i)) {
            return false;
        }
        return fp(i) ? std::bit_cast<double>(code(i).imm) == v
                     : static_cast<double>(code(i).imm) == v;
    }

    int push_constant(const ExprInstr& c) {
        return is_float(c.type) ? new_.constant(c.type, std::bit_cast<double>(c.imm))
                                : new_.constant_i64(c.type, c.imm);
    }
    // The narrowest type known to hold all values of an instruction.
    int track(int i, DType t) {
        if (holds_.size() < new_.code.size()) {
            holds_.push_back(t);
            ranges_.push_back(instruction_range(new_, static_cast<size_t>(i), ranges_, inputs_));
        }
        return i;
    }
    DType held(int i) const { return holds_[static_cast<size_t>(i)]; }

    int make_in(int index) {
        DType t = inputs_[static_cast<size_t>(index)].dtype;
        return track(new_.in(index, t), t);
    }

    // The value of an operation on constants.
    int folded(const ExprInstr& c) {
        Expr one;
        ExprInstr last = c;
        for (int k = 0; k < arity(c.op); ++k) {
            auto& a = last.args[static_cast<size_t>(k)];
            one.code.push_back(code(a));
            a = k;
        }
        one.code.push_back(last);
        std::array<Scalar, 4> work{};
        Scalar v = eval(one, {}, work);
        int i = is_float(c.type) ? new_.constant(c.type, v.f) : new_.constant_i64(c.type, v.i);
        return track(i, c.type);
    }

    // Whether the casts x -> via -> to equal x -> to. Floats saturate to an integer type, integers
    // wrap.
    bool may_skip(int x, DType via, DType to) const {
        bool saturates = is_float(via) && is_integer(to);
        bool wraps = !is_float(code(x).type);
        return holds_all(via, held(x)) && (!(saturates && wraps) || holds_all(to, held(x)));
    }

    int cast(int x, DType to, bool saturate) {
        DType type = compute_type(to);
        ExprInstr c{ExprOp::Cast, type, {x}, saturate ? 1 : 0, to};
        if (is_const(x)) {
            return folded(c);
        }
        if (is(x, ExprOp::Cast) && may_skip(arg(x, 0), code(x).to, to)) {
            return cast(arg(x, 0), to, saturate);
        }
        if (code(x).type == type && holds_all(to, held(x))) {
            return x;
        }
        DType narrow = holds_all(to, held(x)) ? held(x) : to;
        return track(new_.cast(x, to, saturate), narrow);
    }

    int select(int c, int a, int b) {
        if (a == b) {
            return a;
        }
        if (is_const(c)) {
            return code(c).imm != 0 ? a : b;
        }
        if (is(c, ExprOp::Not) && code(c).type == DType::Bool) {
            return select(arg(c, 0), b, a);
        }
        if (code(a).type == DType::Bool && is_const(a) && is_const(b)) {
            return code(a).imm != 0 ? c : unary(ExprOp::Not, c);
        }
        if (is(a, ExprOp::Select) && arg(a, 0) == c) {
            return select(c, arg(a, 1), b);
        }
        if (is(b, ExprOp::Select) && arg(b, 0) == c) {
            return select(c, a, arg(b, 2));
        }
        DType t = held(a) == held(b) ? held(a) : code(a).type;
        return track(new_.select(c, a, b), t);
    }

    int unary(ExprOp op, int x) {
        bool test = kind(op) == ExprKind::Classify;
        DType t = test ? DType::Bool : code(x).type;
        if (is_const(x)) {
            return folded({op, t, {x, 0}});
        }
        if ((op == ExprOp::Neg || op == ExprOp::Not) && is(x, op)) {
            return arg(x, 0);
        }
        if (is_idempotent(op) && is(x, op)) {
            return x;
        }
        if (is_integral(op) && is_integral(code(x).op)) {
            return x;
        }
        if (op == ExprOp::Abs && is(x, ExprOp::Neg)) {
            return unary(op, arg(x, 0));
        }
        return track(new_.op(op, x), t);
    }

    int binary(ExprOp op, int a, int b) {
        bool test = kind(op) == ExprKind::Compare;
        DType t = test ? DType::Bool : code(a).type;
        if (is_const(a) && is_const(b)) {
            return folded({op, t, {a, b}});
        }
        if (is_const(a) && is_commutative(op)) {
            std::swap(a, b);
        }
        double identity = right_identity(op);
        if (!std::isnan(identity) && is_number(b, identity)) {
            return a;
        }
        if (auto r = code(a).type == DType::Bool ? boolean(op, a, b)
                     : fp(a)                     ? std::nullopt
                                                 : integer(op, a, b)) {
            return *r;
        }
        bool extreme = op == ExprOp::Min || op == ExprOp::Max;
        if (extreme && a == b) {
            return a;
        }
        if (extreme && is_const(b) && is(a, op) && is_const(arg(a, 1))) {
            return binary(op, arg(a, 0), folded({op, t, {arg(a, 1), b}}));
        }
        return track(new_.op(op, a, b), t);
    }

    std::optional<int> boolean(ExprOp op, int a, int b) {
        if (op != ExprOp::And && op != ExprOp::Or) {
            return std::nullopt;
        }
        if (a == b) {
            return a;
        }
        if (is_const(b)) {
            bool absorbs = (code(b).imm != 0) == (op == ExprOp::Or);
            return absorbs ? b : a;
        }
        return std::nullopt;
    }

    std::optional<int> integer(ExprOp op, int a, int b) {
        bool bits = op == ExprOp::And || op == ExprOp::Or;
        if (bits && a == b) {
            return a;
        }
        if ((op == ExprOp::Mul || op == ExprOp::And) && is_number(b, 0)) {
            return b;
        }
        if ((op == ExprOp::Or || op == ExprOp::Xor) && is_number(b, 0)) {
            return a;
        }
        if ((op == ExprOp::Sub || op == ExprOp::Xor) && a == b) {
            return track(new_.constant_i64(code(a).type, 0), code(a).type);
        }
        if (auto known = compared(op, a, b)) {
            return track(new_.constant_i64(DType::Bool, *known ? 1 : 0), DType::Bool);
        }
        return std::nullopt;
    }

    // Decides a comparison of integers by their bounds.
    std::optional<bool> compared(ExprOp op, int a, int b) const {
        const Interval& x = ranges_[static_cast<size_t>(a)];
        const Interval& y = ranges_[static_cast<size_t>(b)];
        bool apart = x.high < y.low || y.high < x.low;
        switch (op) {
        case ExprOp::Eq:
            return a == b ? std::optional(true) : apart ? std::optional(false) : std::nullopt;
        case ExprOp::Lt:
            return x.high < y.low              ? std::optional(true)
                   : a == b || x.low >= y.high ? std::optional(false)
                                               : std::nullopt;
        case ExprOp::Le:
            return a == b || x.high <= y.low ? std::optional(true)
                   : x.low > y.high          ? std::optional(false)
                                             : std::nullopt;
        default:
            return std::nullopt;
        }
    }

    // The store rounds anyway.
    int drop_last_cast(int i) const {
        bool rounds = result_ == DType::F16 || result_ == DType::BF16;
        bool same = is(i, ExprOp::Cast) && code(i).to == result_ && rounds;
        return same && code(arg(i, 0)).type == code(i).type ? arg(i, 0) : i;
    }

    // The instructions that `result` needs, in order, with `result` last.
    Expr reachable(int result) const {
        std::vector<bool> needed(new_.code.size(), false);
        needed[static_cast<size_t>(result)] = true;
        for (size_t i = needed.size(); i-- > 0;) {
            for (int k = 0; needed[i] && k < arity(new_.code[i].op); ++k) {
                needed[static_cast<size_t>(new_.code[i].args[static_cast<size_t>(k)])] = true;
            }
        }
        Expr out;
        std::vector<int> at(needed.size(), 0);
        for (size_t i = 0; i < needed.size(); ++i) {
            if (!needed[i]) {
                continue;
            }
            ExprInstr c = new_.code[i];
            for (int k = 0; k < 3 && c.op != ExprOp::In; ++k) {
                auto& a = c.args[static_cast<size_t>(k)];
                a = k < arity(c.op) ? at[static_cast<size_t>(a)] : 0;
            }
            at[i] = static_cast<int>(out.code.size());
            out.code.push_back(c);
        }
        return out;
    }

    const Expr& old_;
    std::span<const InputFacts> inputs_;
    DType result_;
    Expr new_;
    std::vector<DType> holds_;
    std::vector<Interval> ranges_;
};

} // namespace

bool holds_all(DType wide, DType narrow) {
    if (wide == narrow || narrow == DType::Bool) {
        return true;
    }
    if (wide == DType::Bool || (is_float(narrow) && !is_float(wide))) {
        return false;
    }
    if (is_float(wide)) {
        FloatShape w = shape_of(wide);
        if (!is_float(narrow)) {
            return value_bits(narrow) <= w.mantissa && value_bits(narrow) <= w.max_exponent;
        }
        FloatShape n = shape_of(narrow);
        // E4M3 has no infinity, E2M1 neither infinity nor NaN.
        bool specials = wide != DType::F8E4M3 && wide != DType::F4E2M1;
        return specials && n.mantissa <= w.mantissa && n.min_exponent >= w.min_exponent &&
               n.max_exponent <= w.max_exponent;
    }
    bool sign = is_signed(wide) || !is_signed(narrow);
    return sign && value_bits(narrow) <= value_bits(wide);
}

Expr simplified(const Expr& e, std::span<const InputFacts> inputs, DType result) {
    return Simplifier(e, inputs, result).run();
}

const Expr& SimplifiedBodies::of(const Expr& e, std::span<const InputFacts> inputs, DType result) {
    constexpr size_t most = 4096;
    uint64_t h = mix(hash_of(e), static_cast<uint64_t>(result));
    for (const InputFacts& i : inputs) {
        h = mix(mix(h, static_cast<uint64_t>(i.dtype)), static_cast<uint64_t>(i.range.low));
        h = mix(h, static_cast<uint64_t>(i.range.high));
    }
    if (entries_.size() >= most) {
        entries_.clear();
    }
    Entry& entry = entries_[h];
    bool is_known =
        entry.from == e && entry.result == result &&
        std::equal(inputs.begin(), inputs.end(), entry.inputs.begin(), entry.inputs.end());
    if (!is_known || e.code.empty()) {
        entry = {e, {inputs.begin(), inputs.end()}, result, simplified(e, inputs, result)};
    }
    return entry.to;
}

} // namespace ingot::passes
