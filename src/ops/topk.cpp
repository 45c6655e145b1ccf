// SPDX-License-Identifier: Apache-2.0
// topk: a stable sort, cut after k.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

#include <array>

namespace ingot::ops {

namespace {

Values expand_topk(Graph& g, const TopK& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "topk takes 1 input, got ", in.size());
    const Type t = g.type(in[0]);
    int64_t axis = normalize_axis(a.axis, t.rank());
    const Dim& size = t.dims[static_cast<size_t>(axis)];
    require(!a.k.is_const() || !size.is_const() ||
                (a.k.value() >= 0 && a.k.value() <= size.value()),
            ErrorCode::InvalidModel, "topk with k = ", a.k, " of ", t, " along axis ", axis,
            ", which has ", size, " elements");
    Values sorted = sort(g, in[0], axis, a.largest);
    return {slice(g, sorted[0], axis, 0, a.k), slice(g, sorted[1], axis, 0, a.k)};
}

} // namespace

Values topk(Graph& g, TopK a, Value x) {
    a.axis = normalize_axis(a.axis, g.type(x).rank());
    return g.add(topk_def, std::move(a), std::array{x});
}

const OpDef topk_def = composite<TopK>(
    "topk", {Rounding::Matters, InHalf::Narrow, like_result},
    [](Graph& g, const TopK& a, std::span<const Value> in) { return expand_topk(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable topk_ops;
static const OpDef* const list[] = {&ops::topk_def};
const OpTable topk_ops = list;

} // namespace ingot
