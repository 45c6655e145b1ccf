// SPDX-License-Identifier: Apache-2.0
#include "ops/fence.h"

#include "base/error.h"
#include "ops/op_table.h"

namespace ingot::ops {

Value fence(Graph& g, Value x, bool opens) {
    return g.add1(fence_def, Fence{opens}, {x});
}

const OpDef fence_def =
    composite<Fence>("fence", [](Graph&, const Fence&, std::span<const Value> in) {
        require(in.size() == 1, ErrorCode::InvalidModel, "fence takes 1 input, got ", in.size());
        return Values{in[0]};
    });

} // namespace ingot::ops

namespace ingot {

extern const OpTable fence_ops;
static const OpDef* const list[] = {&ops::fence_def};
const OpTable fence_ops = list;

} // namespace ingot
