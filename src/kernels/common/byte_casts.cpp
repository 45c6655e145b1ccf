// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/byte_casts.h"

#include "base/text.h"
#include "kernels/common/expr_text.h"

#include <bit>
#include <cmath>

namespace ingot::kernels {

namespace {

const ExprInstr& at(const Expr& e, int n) {
    return e.code[static_cast<size_t>(n)];
}

struct Bounded {
    int x;
    double bound;
};
/// An f32 instruction `op` (Max or Min) of x and a whole constant.
std::optional<Bounded> bounded(const Expr& e, int n, ExprOp op) {
    const ExprInstr& c = at(e, n);
    if (c.op != op || c.type != DType::F32) {
        return std::nullopt;
    }
    for (size_t k : {0, 1}) {
        const ExprInstr& b = at(e, c.args[k]);
        double bound = b.op == ExprOp::Const ? std::bit_cast<double>(b.imm) : 0.5;
        if (bound == std::rint(bound)) {
            return Bounded{c.args[1 - k], bound};
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<Quantised> quantised_at(const Expr& e, size_t n, const std::vector<int>& uses) {
    const ExprInstr& c = e.code[n];
    if (c.op != ExprOp::Cast || !is_byte(c.to)) {
        return std::nullopt;
    }
    std::optional<Bounded> above = bounded(e, c.args[0], ExprOp::Min);
    std::optional<Bounded> below = above ? bounded(e, above->x, ExprOp::Max) : std::nullopt;
    if (!below || at(e, below->x).op != ExprOp::Round) {
        return std::nullopt;
    }
    double lowest = c.to == DType::I8 ? -128 : 0;
    Quantised q = {
        at(e, below->x).args[0], below->bound, above->bound, c.to, {c.args[0], above->x, below->x}};
    for (int i : q.inside) {
        if (uses[static_cast<size_t>(i)] != 1) {
            return std::nullopt;
        }
    }
    bool fits = q.low >= lowest && q.high <= lowest + 255 && q.low <= q.high;
    return fits ? std::optional(q) : std::nullopt;
}

std::string bounded_text(const Quantised& q, const std::string& x) {
    double lowest = q.to == DType::I8 ? -128 : 0;
    auto bound = [](std::string_view function, const std::string& of, double at) {
        return str(function, "(", of, ", ", literal(DType::F32, std::bit_cast<int64_t>(at)), ")");
    };
    std::string above = q.low > lowest ? bound("bound_below", x, q.low) : x;
    return q.high < lowest + 255 ? bound("bound_above", above, q.high) : above;
}

std::string quantised_text(const Quantised& q, const std::string& x) {
    return str(q.to == DType::I8 ? "round_to_i8(" : "round_to_u8(", bounded_text(q, x), ")");
}

std::string inline_quantised_text(const Quantised& q, const std::string& x) {
    // 1.5 * 2^23 + x: the low byte is that of x, rounded to even, below 0 too.
    return str("(", x, " != ", x, " ? 0u : __float_as_uint(fminf(fmaxf(", x, ", ",
               literal(DType::F32, std::bit_cast<int64_t>(q.low)), "), ",
               literal(DType::F32, std::bit_cast<int64_t>(q.high)), ") + 12582912.0f))");
}

std::string float_of_byte(const std::string& x, DType from) {
    // 2^23 + x; of I8, x + 128.
    return from == DType::I8
               ? str("(__uint_as_float(0x4b000080u ^ (u32)(u8)", x, ") - 8388736.0f)")
               : str("(__uint_as_float(0x4b000000u | (u32)(u8)", x, ") - 8388608.0f)");
}

int byte_behind(const Expr& e, int n) {
    const ExprInstr& c = at(e, n);
    if (is_byte(c.type)) {
        return n;
    }
    bool widened = c.op == ExprOp::Cast && is_integer(c.type) && bit_width(c.type) > 8 &&
                   (is_signed(c.type) || at(e, c.args[0]).type == DType::U8);
    return widened && is_byte(at(e, c.args[0]).type) ? c.args[0] : -1;
}

} // namespace ingot::kernels
