// SPDX-License-Identifier: Apache-2.0
#include "ops/fence.h"

#include "base/error.h"
#include "ops/op_table.h"

namespace ingot::ops {

Value fence(Graph& g, Value x, bool opens) {
    return g.add1(fence_def, Fence{opens}, {x});
}

namespace {

bool can_change(const Graph& g, Value v) {
    return g.type(v).dtype == DType::F32 && g.constant(v) == nullptr;
}

} // namespace

Value Fences::enter(Graph& g, Value v) {
    if (!can_change(g, v)) {
        return v;
    }
    if (auto it = left_.find(v.id); it != left_.end()) {
        return it->second;
    }
    auto [it, fresh] = entered_.emplace(v.id, Value());
    if (fresh) {
        it->second = fence(g, v, true);
    }
    return it->second;
}

Value Fences::leave(Graph& g, Value v) {
    if (!can_change(g, v)) {
        return v;
    }
    Value out = fence(g, v, false);
    left_.emplace(out.id, v);
    return out;
}

const OpDef fence_def = composite<Fence>("fence", {Rounding::Matters, InHalf::Narrow, like_result},
                                         [](Graph&, const Fence&, std::span<const Value> in) {
                                             require(in.size() == 1, ErrorCode::InvalidModel,
                                                     "fence takes 1 input, got ", in.size());
                                             return Values{in[0]};
                                         });

} // namespace ingot::ops

namespace ingot {

extern const OpTable fence_ops;
static const OpDef* const list[] = {&ops::fence_def};
const OpTable fence_ops = list;

} // namespace ingot
