// SPDX-License-Identifier: Apache-2.0
#include "ops/roll.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <algorithm>
#include <array>

namespace ingot::ops {

namespace {

Values expand_roll(Graph& g, const Roll& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "roll takes 1 input, got ", in.size());
    const Type t = g.type(in[0]);
    require(a.axes.size() == a.shifts.size(), ErrorCode::InvalidModel, "roll of ", a.axes.size(),
            " axes by ", a.shifts.size(), " shifts, expected one each");
    Value x = in[0];
    for (size_t k = 0; k < a.axes.size(); ++k) {
        int64_t axis = a.axes[k];
        require(axis >= 0 && axis < t.rank() && std::count(a.axes.begin(), a.axes.end(), axis) == 1,
                ErrorCode::InvalidModel, "roll of ", t, " along axes ", a.axes,
                ": expected axes of it, each once");
        const Dim& size = t.dims[static_cast<size_t>(axis)];
        const Dim& shift = a.shifts[k];
        auto from = shift.as_const();
        auto limit = size.as_const();
        require(!from || (*from >= 0 && (!limit || *from <= *limit)), ErrorCode::InvalidModel,
                "roll of ", t, " along axis ", axis, " by ", shift, ", expected 0 to ", size);
        Dim rest = size - shift;
        if (!shift.is_const(0) && !rest.is_const(0)) {
            std::array parts = {slice(g, x, axis, rest, shift), slice(g, x, axis, 0, rest)};
            x = concat(g, parts, axis);
        }
    }
    return {x};
}

} // namespace

Value roll(Graph& g, Roll a, Value x) {
    const Dims& d = g.type(x).dims;
    for (size_t k = 0; k < a.axes.size() && k < a.shifts.size(); ++k) {
        int64_t& axis = a.axes[k];
        axis += axis < 0 ? static_cast<int64_t>(d.size()) : 0;
        bool inside = axis >= 0 && axis < static_cast<int64_t>(d.size());
        auto size = inside ? d[static_cast<size_t>(axis)].as_const() : std::nullopt;
        auto shift = a.shifts[k].as_const();
        if (size && shift) {
            a.shifts[k] = *size == 0 ? 0 : (*shift % *size + *size) % *size;
        }
    }
    return g.add1(roll_def, std::move(a), {x});
}

const OpDef roll_def = composite<Roll>(
    "roll", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](Graph& g, const Roll& a, std::span<const Value> in) { return expand_roll(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable roll_ops;
static const OpDef* const list[] = {&ops::roll_def};
const OpTable roll_ops = list;

} // namespace ingot
