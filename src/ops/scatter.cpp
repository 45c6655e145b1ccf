// SPDX-License-Identifier: Apache-2.0
// scatter: replaces rows of axis 0 by rows of updates, or combines them.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::checked_indices;
using eval_util::is_index;
using eval_util::may_agree;
using eval_util::read_all;
using eval_util::require_inputs;
using eval_util::store_bytes;
using eval_util::with_combine;
using eval_util::with_wide;
using eval_util::write;

namespace {

std::vector<Type> infer_scatter(const Scatter& a, std::span<const Type> in) {
    require_inputs("scatter", in, 3);
    const Type& x = in[0];
    const Type& updates = in[2];
    require(a.fn == "none" || a.fn == "add" || a.fn == "mul" || a.fn == "min" || a.fn == "max",
            ErrorCode::InvalidModel, "scatter: fn is ", quote(a.fn),
            ", expected none, add, mul, min or max");
    require(x.rank() >= 1, ErrorCode::InvalidModel, "scatter: got ", x,
            ", expected at least rank 1");
    require(is_index(in[1].dtype) && in[1].rank() == 1, ErrorCode::InvalidModel,
            "scatter: the indices are ", in[1], ", expected i64 or i32 of rank 1");
    require(x.dtype != DType::Bool || (a.fn != "add" && a.fn != "mul"), ErrorCode::InvalidModel,
            "scatter: ", a.fn, " of ", x, " is not defined, expected none, min (and) or max (or)");
    bool fits = updates.dtype == x.dtype && updates.rank() == x.rank() &&
                may_agree(updates.dims[0], in[1].dims[0]);
    for (size_t i = 1; fits && i < x.dims.size(); ++i) {
        fits = may_agree(updates.dims[i], x.dims[i]);
    }
    Type want = x;
    want.dims[0] = in[1].dims[0];
    require(fits, ErrorCode::InvalidModel, "scatter: the updates are ", updates, ", expected ",
            want);
    return {x};
}

void replace_rows(std::span<const int64_t> rows, EvalArgs& e) {
    Tensor x = byte_elements(e.in[0]);
    Tensor updates = byte_elements(e.in[2]);
    Tensor out = byte_target(e.out[0]);
    if (out.bytes().empty()) {
        return;
    }
    auto row = out.bytes().size() / static_cast<size_t>(out.shape()[0]);
    std::byte* to = out.mutable_bytes().data();
    std::memcpy(to, x.bytes().data(), x.bytes().size());
    for (size_t i = 0; i < rows.size(); ++i) {
        std::memcpy(to + static_cast<size_t>(rows[i]) * row, updates.bytes().data() + i * row, row);
    }
    store_bytes(out, e.out[0]);
}

template <class W, class F>
void combine_rows(std::span<const int64_t> rows, EvalArgs& e, F combine) {
    auto out = read_all<W>(e.in[0]);
    auto updates = read_all<W>(e.in[2]);
    size_t row = rows.empty() ? 0 : updates.size() / rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
        W* to = out.data() + static_cast<size_t>(rows[i]) * row;
        const W* from = updates.data() + i * row;
        for (size_t k = 0; k < row; ++k) {
            to[k] = combine(to[k], from[k]);
        }
    }
    write(std::span<const W>(out), 0, e.out[0]);
}

void eval_scatter(const Scatter& a, EvalArgs& e) {
    const Shape& shape = e.in[0].shape();
    Shape want = shape;
    want[0] = e.in[1].count();
    require(e.in[2].shape() == want, ErrorCode::InvalidArgument, "scatter: the updates have shape ",
            e.in[2].shape(), ", expected ", want);
    auto rows = checked_indices("scatter", e.in[1], shape[0], 0);
    if (a.fn == "none") {
        return replace_rows(rows, e);
    }
    std::string_view fn = a.fn == "add" ? "sum" : a.fn == "mul" ? "prod" : std::string_view(a.fn);
    with_wide(e.in[0].dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        with_combine(fn, [&](auto combine) { combine_rows<W>(rows, e, combine); });
    });
}

} // namespace

const OpDef scatter_def = primitive<Scatter>(
    "scatter", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const Scatter& a, std::span<const Type> in) { return infer_scatter(a, in); },
    [](const Scatter& a, EvalArgs& e) { eval_scatter(a, e); });

extern const OpTable scatter_ops;
static const OpDef* const list[] = {&scatter_def};
const OpTable scatter_ops = list;

} // namespace ingot
