// SPDX-License-Identifier: Apache-2.0
// Expr as device text, and the names of element types there. The text calls functions of math.cuh.
#pragma once

#include "ir/expr.h"
#include "kernels/common/fused_expr.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ingot::kernels {

/// The device type that stores an element: "F16", "float", "i8", "bool". The packed ones ("I4")
/// hold one element in the low four bits.
std::string_view c_type(DType stored);
/// The device type for computing with elements: "float", "double", "i32", ...
std::string_view compute_c_type(DType stored);

struct ExprText {
    std::string statements; // declare the variables of `result`
    std::string result;     // an expression of e.type(), or of float before the rounding left out
    bool fast_math = false; // calls functions of fast_math.cuh
    bool rounding = false;  // of rounding.cuh
};
/// The functions that text may call beside those of math.cuh, for which device_files has to come
/// before it. Fast: exp, sigmoid, tanh and erf of f32 come from fast_math.cuh, which is precise
/// enough for results of 16 and 8 bits.
enum class Functions { Few, Precise, Fast };
/// `inputs`: one device expression per input of the map, in its compute type; evaluated at each
/// use. Variables are named `prefix` and a number. `rounded_to`: the type of 16 or 8 bits to which
/// the caller rounds the result, so that a last instruction that rounds to it has no text.
ExprText expr_text(const Expr& e, std::span<const std::string> inputs,
                   std::string_view prefix = "v", Functions functions = Functions::Few,
                   std::optional<DType> rounded_to = {});
/// About the instructions on the device of that text, `fast` or precise.
int instructions_of(const Expr& e, bool fast);
/// The device files that the text needs before it, but for those that are in `others`.
std::string device_files(const ExprText& t, std::string_view others = {});
/// f16 and bf16.
bool narrow_result(DType stored);

/// A literal of a compute type; `imm` as in ExprInstr.
std::string literal(DType type, int64_t imm);

} // namespace ingot::kernels
