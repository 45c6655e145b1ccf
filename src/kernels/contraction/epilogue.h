// SPDX-License-Identifier: Apache-2.0
// The epilogue of a contraction: the map that follows the sums, or the sums of a pair of columns.
#pragma once

#include "base/text.h"
#include "ir/expr.h"
#include "kernels/common/expr_text.h"
#include "kernels/family.h"

namespace ingot::kernels {

/// The function after the sums. `body` begins with the addends: ((sum + operand 0) + operand 1)
/// ...; each of them may be missing, and counts as -0 then. Sums of a pair of columns have no
/// addends.
struct Epilogue {
    DType sum_type = DType::F32;
    DType type = DType::F32; // as stored
    size_t sums = 1;
    /// Functions by fast_math.cuh: results have 16 bits, or the operands of sums may be rounded to
    /// TF32, which errs far more.
    bool quick = false;
    Expr body; // of the sums and the operands, in this order
    size_t addends = 0;
    std::vector<Operand> operands; // broadcast to the result's shape
};
/// The Operand::buffer of a missing addend.
constexpr int missing_operand = -3;

/// As plan::refuse_epilogue; only `quantised` may have 4-bit elements.
std::optional<std::string> refuse_contraction(const Group& group, Value quantised = {});
/// Whether the group is a main node, two slices and a map, as for gated linear units; then the
/// reason why it is not one whose map reads the halves of the main node's last axis, the first one
/// first.
bool has_halves(const Group& group);
std::optional<std::string> refuse_halves(const Group& group);
Epilogue epilogue_of(const Problem& p);
/// Adds a missing addend. All operands are addends.
void add_missing_addend(Epilogue& e);
/// A part of the epilogue's text: OUT value_of(ACC sum, elements of the operands), after the file
/// that it calls. `unrounded`: a float, for a result of 16 bits or a body that ends_by_rounding.
std::string value_text(const Epilogue& f, bool unrounded = false);
/// About the instructions of value_of, with those that widen its operands.
int value_instructions(const Epilogue& f);

} // namespace ingot::kernels
