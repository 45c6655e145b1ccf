// SPDX-License-Identifier: Apache-2.0
// gather: rows of an axis chosen by a tensor of indices.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::AxisSplit;
using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::checked_indices;
using eval_util::is_index;
using eval_util::require_axis;
using eval_util::require_inputs;
using eval_util::split_at;
using eval_util::store_bytes;

namespace {

std::vector<Type> infer_gather(const Gather& a, std::span<const Type> in) {
    require_inputs("gather", in, 2);
    require_axis("gather", a.axis, in[0]);
    require(is_index(in[1].dtype), ErrorCode::InvalidModel, "gather: the indices are ", in[1],
            ", expected i64 or i32");
    auto at = in[0].dims.begin() + a.axis;
    Type out{in[0].dtype, Dims(in[0].dims.begin(), at)};
    out.dims.insert(out.dims.end(), in[1].dims.begin(), in[1].dims.end());
    out.dims.insert(out.dims.end(), at + 1, in[0].dims.end());
    return {out};
}

void eval_gather(const Gather& a, EvalArgs& e) {
    AxisSplit s = split_at(e.in[0].shape(), a.axis);
    auto rows = checked_indices("gather", e.in[1], s.size, a.axis);
    Tensor x = byte_elements(e.in[0]);
    Tensor out = byte_target(e.out[0]);
    int64_t row = s.inner * byte_size(x.dtype(), 1);
    std::byte* to = out.mutable_bytes().data();
    for (int64_t o = 0; row != 0 && o < s.outer; ++o) {
        const std::byte* from = x.bytes().data() + o * s.size * row;
        for (int64_t i : rows) {
            std::memcpy(to, from + i * row, static_cast<size_t>(row));
            to += row;
        }
    }
    store_bytes(out, e.out[0]);
}

std::vector<HostRef> host_gather(std::span<const HostRef> in) {
    if (in[0] == nullptr || in[1] == nullptr || in[0]->shape.size() != 1) {
        return {};
    }
    auto size = static_cast<int64_t>(in[0]->elements.size());
    auto r = std::make_shared<HostValue>();
    r->shape = in[1]->shape;
    for (const auto& index : in[1]->elements) {
        std::optional<int64_t> at =
            index && index->denominator == 1 ? index->numerator.as_const() : std::nullopt;
        if (at && (*at < 0 || *at >= size)) {
            return {};
        }
        r->elements.push_back(at ? in[0]->elements[static_cast<size_t>(*at)] : std::nullopt);
    }
    return {r};
}

} // namespace

const OpDef gather_def = primitive<Gather>(
    "gather",
    {Rounding::Moves,
     [](const Graph& g, const Node& n) {
         // Rows of a constant are weights.
         return g.constant(n.inputs[0]) == nullptr ? InHalf::AsOperands : InHalf::Narrow;
     },
     like_result},
    [](const Gather& a, std::span<const Type> in) { return infer_gather(a, in); },
    [](const Gather& a, EvalArgs& e) { eval_gather(a, e); },
    [](const Gather&, std::span<const HostRef> in, std::span<const Type>) {
        return host_gather(in);
    });

extern const OpTable gather_ops;
static const OpDef* const list[] = {&gather_def};
const OpTable gather_ops = list;

} // namespace ingot
