// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/expr_text.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/common/byte_casts.h"
#include "kernels/common/fused_expr.h"
#include "kernels/family.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>

namespace ingot::kernels {

namespace {

struct Names {
    std::string_view stored;
    std::string_view compute;
};

constexpr std::array<Names, dtype_count> names = {{
    {"bool", "bool"},
    {"I4", "i8"},
    {"U4", "u8"},
    {"i8", "i8"},
    {"u8", "u8"},
    {"i16", "i16"},
    {"u16", "u16"},
    {"i32", "i32"},
    {"u32", "u32"},
    {"i64", "i64"},
    {"u64", "u64"},
    {"F4E2M1", "float"},
    {"F8E4M3", "float"},
    {"F8E5M2", "float"},
    {"BF16", "float"},
    {"F16", "float"},
    {"float", "float"},
    {"double", "double"},
}};

std::string float_literal(double v, bool f64) {
    if (std::isnan(v)) {
        return f64 ? "(double)ingot_nan()" : "ingot_nan()";
    }
    if (std::isinf(v)) {
        return str(v < 0 ? "(-" : "(", f64 ? "(double)" : "", "ingot_inf())");
    }
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), f64 ? "%.17g" : "%.9g", v);
    std::string out = text.data();
    if (out.find_first_of(".e") == std::string::npos) {
        out += ".0";
    }
    out += f64 ? "" : "f";
    return std::signbit(v) ? str("(", out, ")") : out;
}

std::string cast_to_float(const std::string& x, DType from, DType to, bool saturate) {
    if (to == DType::F64) {
        return str("(double)", x);
    }
    if (to == DType::F32) {
        return str("(float)", x);
    }
    // Integers that a float does not hold exactly are rounded once, from double.
    bool wide = from == DType::F64 || (!is_float(from) && bit_width(from) > 16);
    bool half = to == DType::F16 || to == DType::BF16;
    std::string source = str(wide && half ? "(double)" : wide ? "(float)(double)" : "(float)", x);
    std::string call = str("ingot_", name(to), "(", source);
    if (to == DType::F8E4M3 || to == DType::F8E5M2) {
        call += saturate ? ", true" : ", false";
    }
    return call + ")";
}

std::string cast_to_integer(const std::string& x, DType from, DType to) {
    std::string source = x;
    bool byte = bit_width(to) == 8 && is_float(from) && from != DType::F64;
    if (byte) {
        source = str(is_signed(to) ? "ingot_signed8(" : "ingot_unsigned8(", x, ")");
    } else if (is_float(from)) {
        source =
            str(is_signed(to) ? "ingot_signed(" : "ingot_unsigned(", x, ", ", bit_width(to), ")");
    }
    if (is_packed(to)) {
        return str("ingot_", name(to), "((i64)", source, ")");
    }
    return str("(", compute_c_type(to), ")", source);
}

std::string cast_text(const std::string& x, DType from, const ExprInstr& c) {
    if (is_float(c.to)) {
        return cast_to_float(x, from, c.to, c.imm != 0);
    }
    if (c.to == DType::Bool) {
        return str("(", x, " != ", literal(from, 0), ")");
    }
    return cast_to_integer(x, from, c.to);
}

std::string substituted(std::string_view text, const std::string& a, const std::string& b) {
    std::string out;
    for (size_t n = 0; n < text.size(); ++n) {
        if (text[n] == '{') {
            out += text[n + 1] == '0' ? a : b;
            n += 2;
        } else {
            out += text[n];
        }
    }
    return out;
}

bool calls_function(ExprOp op) {
    return device_text(op).substr(0, 6) == "ingot_";
}

/// The text of an operand of `type` in `op`, with overflow and promotion as in ir/expr.h.
std::string operand_text(const std::string& x, ExprOp op, DType type) {
    bool calls = calls_function(op);
    if (is_float(type) || kind(op) == ExprKind::Compare || kind(op) == ExprKind::Classify) {
        return x;
    }
    if (type == DType::Bool) {
        bool logic =
            op == ExprOp::And || op == ExprOp::Or || op == ExprOp::Xor || op == ExprOp::Not;
        return logic ? x : str(calls ? "(i32)" : "(u32)", x);
    }
    if (calls || kind(op) == ExprKind::Bits) {
        return x;
    }
    return str(bit_width(type) == 64 ? "(u64)" : "(u32)", x);
}

/// x to the power of a small whole number, as products.
std::string power_text(const std::string& x, const ExprInstr& exponent) {
    if (exponent.op != ExprOp::Const || !is_float(exponent.type)) {
        return "";
    }
    auto e = std::bit_cast<double>(exponent.imm);
    return e == 2 ? str("(", x, " * ", x, ")") : e == 3 ? str("(", x, " * ", x, " * ", x, ")") : "";
}

/// Functions of fast_math.cuh, for f32.
std::string_view fast_text(ExprOp op) {
    switch (op) {
    case ExprOp::Erf:
        return "fast_erf({0})";
    case ExprOp::Exp:
        return "fast_exp({0})";
    case ExprOp::Sigmoid:
        return "fast_sigmoid({0})";
    case ExprOp::Tanh:
        return "fast_tanh({0})";
    default:
        return {};
    }
}

constexpr int gelu_instructions = 10, erf_plus_1_instructions = 12, tanh_plus_1_instructions = 5;
constexpr int function_instructions = 30; // of one that is not listed

/// About the instructions of an operation on the device; `quick`: by fast_math.cuh.
int instructions_of(const ExprInstr& c, bool quick) {
    switch (c.op) {
    case ExprOp::Erf:
        return quick ? 22 : function_instructions;
    case ExprOp::Tanh:
        return quick ? 16 : function_instructions;
    case ExprOp::Sigmoid:
        return quick ? 4 : function_instructions;
    case ExprOp::Exp:
        return quick ? 2 : function_instructions;
    case ExprOp::Max:
    case ExprOp::Min:
        return 3;
    case ExprOp::Cast:
        return narrow_result(c.to)                        ? 2
               : c.to == DType::F8E4M3                    ? 8
               : is_packed(c.to) || c.to == DType::F8E5M2 ? function_instructions
               : !is_float(c.to) && bit_width(c.to) == 8  ? 6
                                                          : 1;
    case ExprOp::Round:
        return 2;
    case ExprOp::Abs:
    case ExprOp::Select:
        return 1;
    default:
        return calls_function(c.op) ? function_instructions : 1;
    }
}

bool is_quick(const ExprInstr& c, bool fast) {
    return fast && compute_c_type(c.type) == "float" && !fast_text(c.op).empty();
}

/// Where instruction n is 1 + erf(x) or 1 + tanh(x) and nothing else reads that function: its
/// position, else -1.
int fused_plus_one(const Expr& e, size_t n, const Fused& with, bool fast) {
    int at = fast ? plus_one(e, n) : -1;
    return at >= 0 && with.skipped[static_cast<size_t>(at)] ? at : -1;
}

/// Whether instruction n is a power_text.
bool is_whole_power(const Expr& e, size_t n) {
    const ExprInstr& c = e.code[n];
    return c.op == ExprOp::Pow && !power_text("", e.code[static_cast<size_t>(c.args[1])]).empty();
}

/// Whether instruction n bounds or rounds by one instruction of rounding.cuh.
bool is_of_rounding(const Expr& e, size_t n, const Fused& with) {
    const ExprInstr& c = e.code[n];
    bool bounds = (c.op == ExprOp::Max || c.op == ExprOp::Min) && with.rounds_to_byte &&
                  compute_c_type(c.type) == "float";
    bool to_f8 = n + 1 == e.code.size() && c.op == ExprOp::Cast && c.to == DType::F8E4M3;
    return bounds || with.quantised[n] || (to_f8 && with.rounds_to_byte);
}

/// The value of an instruction that is no input, no constant and not skipped.
struct Statement {
    std::string text;
    bool fast_math = false;
    bool rounding = false;
};
Statement statement_of(const Expr& e, size_t n, std::span<const std::string> at, const Fused& with,
                       Functions functions) {
    bool fast = functions == Functions::Fast;
    const ExprInstr& c = e.code[n];
    auto arg = [&](size_t k) -> const std::string& { return at[static_cast<size_t>(c.args[k])]; };
    if (with.gelu[n]) {
        return {str("fast_gelu(", at[static_cast<size_t>(with.gelu[n]->x)], ")"), true};
    }
    if (int function = fused_plus_one(e, n, with, fast); function >= 0) {
        const ExprInstr& f = e.code[static_cast<size_t>(function)];
        return {str(f.op == ExprOp::Erf ? "fast_erf_plus_1(" : "fast_tanh_plus_1(",
                    at[static_cast<size_t>(f.args[0])], ")"),
                true};
    }
    if (const std::optional<Quantised>& q = with.quantised[n]) {
        const std::string& x = at[static_cast<size_t>(q->x)];
        return functions == Functions::Few ? Statement{inline_quantised_text(*q, x)}
                                           : Statement{quantised_text(*q, x), false, true};
    }
    DType from = e.code[static_cast<size_t>(c.args[0])].type;
    if (c.op == ExprOp::Cast) {
        int byte = c.to == DType::F32 ? byte_behind(e, c.args[0]) : -1;
        return {byte >= 0 ? float_of_byte(at[static_cast<size_t>(byte)],
                                          e.code[static_cast<size_t>(byte)].type)
                          : cast_text(arg(0), from, c)};
    }
    if (c.op == ExprOp::Select) {
        return {str("(", arg(0), " ? ", arg(1), " : ", arg(2), ")")};
    }
    if (c.op == ExprOp::Pow) {
        std::string power = power_text(arg(0), e.code[static_cast<size_t>(c.args[1])]);
        if (!power.empty()) {
            return {power};
        }
    }
    if ((c.op == ExprOp::Max || c.op == ExprOp::Min) && with.rounds_to_byte &&
        compute_c_type(c.type) == "float" && functions != Functions::Few) {
        return {
            str(c.op == ExprOp::Max ? "bound_below(" : "bound_above(", arg(0), ", ", arg(1), ")"),
            false, true};
    }
    bool quick = is_quick(c, fast);
    return {substituted(quick ? fast_text(c.op) : device_text(c.op),
                        operand_text(arg(0), c.op, from),
                        arity(c.op) > 1 ? operand_text(arg(1), c.op, from) : ""),
            quick};
}

} // namespace

std::string_view c_type(DType stored) {
    return names[static_cast<size_t>(stored)].stored;
}

std::string_view compute_c_type(DType stored) {
    return names[static_cast<size_t>(stored)].compute;
}

std::string literal(DType type, int64_t imm) {
    if (is_float(type)) {
        return float_literal(std::bit_cast<double>(imm), type == DType::F64);
    }
    if (type == DType::Bool) {
        return imm != 0 ? "true" : "false";
    }
    if (type == DType::I64 || type == DType::U64) {
        return str("(", compute_c_type(type), ")", static_cast<uint64_t>(imm), "ull");
    }
    return type == DType::U32 ? str(static_cast<uint32_t>(imm), "u")
           : imm == INT32_MIN ? std::string("(i32)0x80000000u")
                              : str("(", compute_c_type(type), ")(", imm, ")");
}

std::string device_files(const ExprText& t, std::string_view others) {
    std::string out;
    for (auto [called, name] : {std::pair(t.fast_math, "fast_math"), {t.rounding, "rounding"}}) {
        if (called && others.find(device_file(name)) == std::string_view::npos) {
            out += device_file(name);
        }
    }
    return out;
}

bool narrow_result(DType stored) {
    return stored == DType::F16 || stored == DType::BF16;
}

ExprText expr_text(const Expr& e, std::span<const std::string> inputs, std::string_view prefix,
                   Functions functions, std::optional<DType> rounded_to) {
    bool fast = functions == Functions::Fast;
    ExprText out;
    std::vector<std::string> at(e.code.size());
    Fused with = fused(e, fast, rounded_to);
    bool leaves = rounded_to == e.code.back().to && ends_by_rounding(e);
    size_t last = leaves ? e.code.size() - 1 : e.code.size();
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        if (c.op == ExprOp::In) {
            auto index = static_cast<size_t>(c.args[0]);
            CHECK(index < inputs.size(), "an expression reads an input that is not given");
            at[n] = inputs[index];
            continue;
        }
        if (c.op == ExprOp::Const) {
            at[n] = literal(c.type, c.imm);
            continue;
        }
        if (with.skipped[n]) {
            continue;
        }
        if (with.unrounded[n]) {
            at[n] = at[static_cast<size_t>(c.args[0])];
            continue;
        }
        if (n == last) {
            const std::optional<Quantised>& q = with.quantised[n];
            const std::string& x = at[static_cast<size_t>(q ? q->x : c.args[0])];
            at[n] = q ? bounded_text(*q, x) : x;
            out.rounding = out.rounding || with.rounds_to_byte; // its functions pack
            continue;
        }
        Statement made = statement_of(e, n, at, with, functions);
        out.fast_math = out.fast_math || made.fast_math;
        out.rounding = out.rounding || made.rounding;
        at[n] = str(prefix, n);
        append(out.statements, str(compute_c_type(c.type), " ", at[n], " = (",
                                   compute_c_type(c.type), ")(", made.text, ");\n"));
    }
    out.result = at.back();
    return out;
}

int instructions_of(const Expr& e, bool fast) {
    int all = 0;
    Fused with = fused(e, fast, std::nullopt);
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        if (c.op == ExprOp::In || c.op == ExprOp::Const || with.skipped[n] || with.unrounded[n]) {
            continue;
        }
        if (with.gelu[n]) {
            all += gelu_instructions;
        } else if (int function = fused_plus_one(e, n, with, fast); function >= 0) {
            bool erf = e.code[static_cast<size_t>(function)].op == ExprOp::Erf;
            all += erf ? erf_plus_1_instructions : tanh_plus_1_instructions;
        } else if (is_of_rounding(e, n, with) || is_whole_power(e, n)) {
            ++all;
        } else {
            all += instructions_of(c, is_quick(c, fast));
        }
    }
    return all;
}

} // namespace ingot::kernels
