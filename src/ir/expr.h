// SPDX-License-Identifier: Apache-2.0
// Expr: the scalar body of a map, a list of instructions in SSA form.
#pragma once

#include "base/dtype.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace ingot {

enum class ExprOp : uint8_t {
    In,     // args[0] = index of the map's input
    Const,  // imm = bits of a double (float types) or the integer
    Cast,   // to `to`; saturating where `imm` is 1
    Select, // args = condition, then, else
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device) Name,
#include "ir/expr.def"
#undef INGOT_EXPR
};
std::string_view name(ExprOp op);
int arity(ExprOp op);
/// op(x, y) == op(y, x), except for the choice between two NaNs or between +0 and -0.
bool is_commutative(ExprOp op);
/// The value y with op(x, y) == x for all x, or NAN.
double right_identity(ExprOp op);
/// Device text with {0}, {1} for the operands; "" for In, Const, Cast and Select.
std::string_view device_text(ExprOp op);

enum class ExprKind : uint8_t { Special, Arith, Float, Bits, Compare, Classify };
ExprKind kind(ExprOp op);

/// The type in which a map computes elements of type `stored`: f32 for all floats except f64; i8/u8
/// for packed integers; else `stored` itself.
DType compute_type(DType stored);

struct ExprInstr {
    ExprOp op = ExprOp::In;
    DType type = DType::F32; // of the result; always a compute type
    std::array<int32_t, 3> args{};
    int64_t imm = 0;
    DType to = DType::F32; // Cast only: the type rounded to; `type` is compute_type(to)
    bool operator==(const ExprInstr&) const = default;
};

/// The last instruction is the result. Integers wrap to their width after each instruction; f16 and
/// bf16 inputs compute as f32 and round where a Cast says so and where the result is stored.
struct Expr {
    std::vector<ExprInstr> code;

    DType type() const { return code.back().type; }
    int input_count() const; // one more than the highest input used
    bool operator==(const Expr&) const = default;

    // Builders; each returns the index of the new instruction. Equal instructions are shared.
    int in(int index, DType stored);
    int constant(DType type, double value); // for integers: value must be exact
    int constant_i64(DType type, int64_t value);
    int cast(int x, DType to, bool saturate = false);
    int select(int c, int a, int b);
    int op(ExprOp o, int a, int b = -1); // operands must have equal types
    /// Appends `other` with its input i replaced by instruction inputs[i]; returns its result.
    int inline_expr(const Expr& other, std::span<const int> inputs);

private:
    int push(const ExprInstr& i);
};

/// "0=in(0):f32; 1=const(2):f32; 2=mul(0,1):f32"
std::string to_text(const Expr& e);
Expr parse_expr(std::string_view text);
/// Checks types, arities, order and, given them, stored input types. Errors: InvalidArgument.
void verify(const Expr& e, std::span<const DType> inputs);

/// For tables of expressions.
uint64_t hash_of(const Expr& e);

/// Whether the result changes little where inputs that are floats do: no comparison, rounding or
/// conversion to integers reads one.
bool is_smooth(const Expr& e);

/// One scalar of a compute type: floats live in f, all else in i.
struct Scalar {
    double f = 0;
    int64_t i = 0;
};
/// Reference evaluation of all instructions for one element; `work` has room for code.size()
/// values.
Scalar eval(const Expr& e, std::span<const Scalar> inputs, std::span<Scalar> work);
/// Casts from a compute type to any dtype.
Scalar cast_scalar(Scalar v, DType from, DType to, bool saturate);
/// Wraps an integer to the width of `t`.
int64_t wrap_integer(int64_t v, DType t);

} // namespace ingot
