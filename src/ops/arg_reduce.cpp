// SPDX-License-Identifier: Apache-2.0
// arg_reduce: the index of the largest or smallest element along an axis.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::AxisSplit;
using eval_util::read;
using eval_util::require_axis;
using eval_util::require_inputs;
using eval_util::split_at;
using eval_util::with_wide;

namespace {

std::vector<Type> infer_arg_reduce(const ArgReduce& a, std::span<const Type> in) {
    require_inputs("arg_reduce", in, 1);
    require(a.fn == "min" || a.fn == "max", ErrorCode::InvalidModel, "arg_reduce: fn is ",
            quote(a.fn), ", expected min or max");
    require_axis("arg_reduce", a.axis, in[0]);
    require(!in[0].dims[static_cast<size_t>(a.axis)].is_const(0), ErrorCode::InvalidModel,
            "arg_reduce: axis ", a.axis, " of ", in[0], " has no ", a.fn,
            ", expected a size of at ", "least 1");
    Type out{DType::I64, in[0].dims};
    out.dims.erase(out.dims.begin() + a.axis);
    return {out};
}

// 1, 0 or -1: `a` is more extreme than, equal to, or less extreme than `b`; NaN is the most
// extreme.
template <class W>
int compare_extremes(W a, W b, bool largest) {
    if (a != a || b != b) {
        return (a != a ? 1 : 0) - (b != b ? 1 : 0);
    }
    int order = a > b ? 1 : a < b ? -1 : 0;
    return largest ? order : -order;
}

template <class W>
void arg_reduce_slabs(const ArgReduce& a, const Tensor& x, std::span<int64_t> out) {
    AxisSplit s = split_at(x.shape(), a.axis);
    std::vector<W> slab(static_cast<size_t>(s.size * s.inner));
    for (int64_t o = 0; o < s.outer; ++o) {
        read(x, o * s.size * s.inner, std::span<W>(slab));
        for (int64_t i = 0; i < s.inner; ++i) {
            int64_t best = 0;
            for (int64_t k = 1; k < s.size; ++k) {
                W challenger = slab[static_cast<size_t>(k * s.inner + i)];
                W champion = slab[static_cast<size_t>(best * s.inner + i)];
                int order = compare_extremes(challenger, champion, a.fn == "max");
                best = order > 0 || (order == 0 && a.last) ? k : best;
            }
            out[static_cast<size_t>(o * s.inner + i)] = best;
        }
    }
}

void eval_arg_reduce(const ArgReduce& a, EvalArgs& e) {
    const Tensor& x = e.in[0];
    require(x.shape()[static_cast<size_t>(a.axis)] > 0 || e.out[0].count() == 0,
            ErrorCode::InvalidArgument, "arg_reduce: axis ", a.axis, " of shape ", x.shape(),
            " has no ", a.fn, ", expected a size of at least 1");
    with_wide(x.dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        arg_reduce_slabs<W>(a, x, e.out[0].as_mutable<int64_t>());
    });
}

} // namespace

const OpDef arg_reduce_def = primitive<ArgReduce>(
    "arg_reduce", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const ArgReduce& a, std::span<const Type> in) { return infer_arg_reduce(a, in); },
    [](const ArgReduce& a, EvalArgs& e) { eval_arg_reduce(a, e); });

extern const OpTable arg_reduce_ops;
static const OpDef* const list[] = {&arg_reduce_def};
const OpTable arg_reduce_ops = list;

} // namespace ingot
