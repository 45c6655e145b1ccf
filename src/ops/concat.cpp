// SPDX-License-Identifier: Apache-2.0
// concat: joins tensors along an axis.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::AxisSplit;
using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::known_one;
using eval_util::may_agree;
using eval_util::require_axis;
using eval_util::split_at;
using eval_util::store_bytes;

namespace {

std::vector<Type> infer_concat(const Concat& a, std::span<const Type> in) {
    require(!in.empty(), ErrorCode::InvalidModel, "concat: got no inputs, expected at least 1");
    require_axis("concat", a.axis, in[0]);
    auto axis = static_cast<size_t>(a.axis);
    Type out = in[0];
    for (size_t i = 1; i < in.size(); ++i) {
        require(in[i].dtype == out.dtype && in[i].rank() == out.rank(), ErrorCode::InvalidModel,
                "concat: input ", i, " is ", in[i], ", expected dtype and rank of input 0, ",
                in[0]);
        for (size_t d = 0; d < out.dims.size(); ++d) {
            if (d == axis) {
                out.dims[d] = out.dims[d] + in[i].dims[d];
                continue;
            }
            require(may_agree(out.dims[d], in[i].dims[d]), ErrorCode::InvalidModel,
                    "concat along axis ", axis, ": input ", i, " is ", in[i], ", expected size ",
                    out.dims[d], " in axis ", d);
            out.dims[d] = known_one(out.dims[d], in[i].dims[d]);
        }
    }
    return {out};
}

void eval_concat(const Concat& a, EvalArgs& e) {
    Tensor out = byte_target(e.out[0]);
    AxisSplit whole = split_at(out.shape(), a.axis);
    auto width = static_cast<size_t>(byte_size(out.dtype(), 1));
    auto row = static_cast<size_t>(whole.size * whole.inner) * width;
    std::byte* to = out.mutable_bytes().data();
    for (size_t i = 0; i < e.in.size(); ++i) {
        Shape want = out.shape();
        auto axis = static_cast<size_t>(a.axis);
        want[axis] = e.in[i].shape()[axis];
        require(e.in[i].shape() == want, ErrorCode::InvalidArgument, "concat along axis ", a.axis,
                ": input ", i, " has shape ", e.in[i].shape(), ", expected ", want);
        Tensor x = byte_elements(e.in[i]);
        auto part = static_cast<size_t>(want[axis] * whole.inner) * width;
        const std::byte* from = x.bytes().data();
        for (int64_t o = 0; part != 0 && o < whole.outer; ++o, from += part) {
            std::memcpy(to + static_cast<size_t>(o) * row, from, part);
        }
        to += part;
    }
    store_bytes(out, e.out[0]);
}

// Elements before the first unknown operand and after the last have known positions.
std::vector<HostRef> host_concat(std::span<const HostRef> in, std::span<const Type> out) {
    auto shape = as_const(out[0].dims);
    if (!shape || shape->size() != 1 || shape->front() > 1024) {
        return {};
    }
    auto r = std::make_shared<HostValue>();
    r->shape = *shape;
    r->elements.resize(static_cast<size_t>(shape->front()));
    size_t at = 0;
    size_t first = 0;
    for (; first < in.size() && in[first] != nullptr; ++first) {
        for (const auto& element : in[first]->elements) {
            r->elements[at++] = element;
        }
    }
    at = r->elements.size();
    for (size_t i = in.size(); i > first && in[i - 1] != nullptr; --i) {
        const auto& elements = in[i - 1]->elements;
        for (size_t k = elements.size(); k-- > 0;) {
            r->elements[--at] = elements[k];
        }
    }
    return {r};
}

} // namespace

const OpDef concat_def = primitive<Concat>(
    "concat", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Concat& a, std::span<const Type> in) { return infer_concat(a, in); },
    [](const Concat& a, EvalArgs& e) { eval_concat(a, e); },
    [](const Concat&, std::span<const HostRef> in, std::span<const Type> out) {
        return host_concat(in, out);
    });

extern const OpTable concat_ops;
static const OpDef* const list[] = {&concat_def};
const OpTable concat_ops = list;

} // namespace ingot
