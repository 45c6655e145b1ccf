// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/fused_expr.h"

#include "kernels/common/expr_text.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace ingot::kernels {

namespace {

bool is_one(const ExprInstr& c) {
    return c.op == ExprOp::Const && is_float(c.type) && std::bit_cast<double>(c.imm) == 1.0;
}

} // namespace

int plus_one(const Expr& e, size_t n) {
    const ExprInstr& c = e.code[n];
    if (c.op != ExprOp::Add || compute_c_type(c.type) != "float") {
        return -1;
    }
    for (int k : {0, 1}) {
        const ExprInstr& f = e.code[static_cast<size_t>(c.args[static_cast<size_t>(k)])];
        if ((f.op == ExprOp::Erf || f.op == ExprOp::Tanh) &&
            is_one(e.code[static_cast<size_t>(c.args[static_cast<size_t>(1 - k)])])) {
            return c.args[static_cast<size_t>(k)];
        }
    }
    return -1;
}

namespace {

/// Functions that occur only with 1 added to them.
std::vector<bool> only_plus_one(const Expr& e, const std::vector<int>& uses) {
    std::vector<int> sums(e.code.size(), 0);
    for (size_t n = 0; n < e.code.size(); ++n) {
        if (int at = plus_one(e, n); at >= 0) {
            ++sums[static_cast<size_t>(at)];
        }
    }
    std::vector<bool> out(e.code.size());
    for (size_t n = 0; n < out.size(); ++n) {
        out[n] = sums[n] > 0 && sums[n] == uses[n];
    }
    return out;
}

/// The other operand of instruction n where it is a product by about `factor`, else -1.
int times(const Expr& e, int n, double factor) {
    const ExprInstr& c = e.code[static_cast<size_t>(n)];
    if (c.op != ExprOp::Mul || compute_c_type(c.type) != "float") {
        return -1;
    }
    for (size_t k : {0, 1}) {
        const ExprInstr& f = e.code[static_cast<size_t>(c.args[k])];
        if (f.op == ExprOp::Const && is_float(f.type) &&
            std::abs(std::bit_cast<double>(f.imm) - factor) < 1e-7) {
            return c.args[1 - k];
        }
    }
    return -1;
}

/// x * 0.5 * (1 + erf(x / sqrt(2))), as gelu expands.
std::optional<Gelu> gelu_at(const Expr& e, size_t n, const std::vector<int>& uses) {
    const ExprInstr& c = e.code[n];
    if (c.op != ExprOp::Mul || compute_c_type(c.type) != "float") {
        return std::nullopt;
    }
    for (size_t k : {0, 1}) {
        int half = c.args[k];
        int sum = c.args[1 - k];
        int x = times(e, half, 0.5);
        int erf = plus_one(e, static_cast<size_t>(sum));
        if (x < 0 || erf < 0 || e.code[static_cast<size_t>(erf)].op != ExprOp::Erf) {
            continue;
        }
        int part = e.code[static_cast<size_t>(erf)].args[0];
        Gelu found = {x, {half, sum, erf, part}};
        bool alone = std::all_of(found.inside.begin(), found.inside.end(),
                                 [&](int i) { return uses[static_cast<size_t>(i)] == 1; });
        if (alone && times(e, part, std::numbers::sqrt2 / 2) == x) {
            return found;
        }
    }
    return std::nullopt;
}

/// Casts of floats to 16 bits between the operations of an expression whose result is rounded to
/// the same type, or to 8 bits: what maps hand to each other when they are apart. Casts whose
/// operand is read beside them stay.
std::vector<bool> unrounded_casts(const Expr& e, const std::vector<int>& uses,
                                  std::optional<DType> rounded_to) {
    std::vector<bool> out(e.code.size());
    bool ends = ends_by_rounding(e);
    if (!ends && !rounded_to) {
        return out;
    }
    size_t last = e.code.size() - 1;
    DType to = ends ? e.code[last].to : *rounded_to;
    std::optional<Quantised> q = quantised_at(e, last, uses);
    size_t end = q      ? static_cast<size_t>(q->x)
                 : ends ? static_cast<size_t>(e.code[last].args[0])
                        : last;
    Expr before{{e.code.begin(), e.code.begin() + static_cast<ptrdiff_t>(end) + 1}};
    if (!is_smooth(before)) {
        return out;
    }
    for (size_t n = 0; n < before.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        auto from = static_cast<size_t>(c.args[0]);
        out[n] = c.op == ExprOp::Cast && narrow_result(c.to) &&
                 (c.to == to || bit_width(to) == 8) && uses[from] == 1 &&
                 compute_c_type(e.code[from].type) == "float";
    }
    return out;
}

} // namespace

bool ends_by_rounding(const Expr& e) {
    const ExprInstr& last = e.code.back();
    bool narrows = last.op == ExprOp::Cast &&
                   (narrow_result(last.to) || (last.to == DType::F8E4M3 && last.imm != 0)) &&
                   compute_c_type(e.code[static_cast<size_t>(last.args[0])].type) == "float";
    return narrows || quantised_at(e, e.code.size() - 1, plan::uses_of(e));
}

Fused fused(const Expr& e, bool fast, std::optional<DType> rounded_to) {
    size_t count = e.code.size();
    std::vector<int> uses = plan::uses_of(e);
    Fused f = {std::vector<std::optional<Gelu>>(count),
               std::vector<std::optional<Quantised>>(count), std::vector<bool>(count, false),
               unrounded_casts(e, uses, rounded_to),
               ends_by_rounding(e) && !narrow_result(e.code.back().to)};
    if (fast) {
        f.skipped = only_plus_one(e, uses);
    }
    auto skip = [&f](const auto& inside) {
        for (int i : inside) {
            f.skipped[static_cast<size_t>(i)] = true;
        }
    };
    for (size_t n = 0; n < count; ++n) {
        f.gelu[n] = fast ? gelu_at(e, n, uses) : std::nullopt;
        if (f.gelu[n]) {
            skip(f.gelu[n]->inside);
        }
        f.quantised[n] = quantised_at(e, n, uses);
        if (f.quantised[n]) {
            skip(f.quantised[n]->inside);
        }
    }
    return f;
}

} // namespace ingot::kernels
