// SPDX-License-Identifier: Apache-2.0
#include "ops/refusal.h"

#include "ops/eval_util.h"
#include "ops/op_table.h"

namespace ingot {

namespace ops {

Value refusal(Graph& g, const Type& type, std::string text) {
    return g.add1(refusal_def, Refusal{type.dtype, type.dims, std::move(text)}, {});
}

const OpDef refusal_def = primitive<Refusal>(
    "refusal", {Rounding::Matters, InHalf::Unchanged, like_result},
    [](const Refusal& a, std::span<const Type> in) {
        eval_util::require_inputs("refusal", in, 0);
        return std::vector<Type>{{a.dtype, a.dims}};
    },
    [](const Refusal& a, EvalArgs&) { fail(ErrorCode::Unsupported, a.text); });

} // namespace ops

extern const OpTable refusal_ops;
static const OpDef* const list[] = {&ops::refusal_def};
const OpTable refusal_ops = list;

} // namespace ingot
