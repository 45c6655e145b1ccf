// SPDX-License-Identifier: Apache-2.0
// pad: adds elements around a tensor, either a constant or copies of the tensor's own.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::require_inputs;
using eval_util::require_scalar;
using eval_util::store_bytes;
using eval_util::Walk;

namespace {

std::vector<Type> infer_pad(const Pad& a, std::span<const Type> in) {
    require_inputs("pad", in, 2);
    const Type& x = in[0];
    require_scalar("pad", "the value", in[1], x.dtype);
    require(a.mode == "constant" || a.mode == "reflect" || a.mode == "edge" || a.mode == "wrap",
            ErrorCode::InvalidModel, "pad: mode is ", quote(a.mode),
            ", expected constant, reflect, edge or wrap");
    require(a.low.size() == x.dims.size() && a.high.size() == x.dims.size(),
            ErrorCode::InvalidModel, "pad: got ", a.low.size(), " low and ", a.high.size(),
            " high sizes, expected ", x.rank(), " of each for ", x);
    Type out{x.dtype, {}};
    for (size_t i = 0; i < x.dims.size(); ++i) {
        for (const Dim& d : {a.low[i], a.high[i]}) {
            require(d.bounds().high >= 0, ErrorCode::InvalidModel, "pad: axis ", i,
                    " is padded by ", d, ", expected at least 0 (slice first)");
        }
        out.dims.push_back(a.low[i] + x.dims[i] + a.high[i]);
    }
    return {out};
}

// The index of the source element for position `i`, or -1 for the constant.
int64_t source_of(const std::string& mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) {
        return i;
    }
    if (mode == "constant") {
        return -1;
    }
    if (mode == "edge") {
        return i < 0 ? 0 : n - 1;
    }
    int64_t period = mode == "wrap" ? n : std::max<int64_t>(2 * (n - 1), 1);
    int64_t r = expr_math::floor_mod(i, period);
    return r < n ? r : period - r;
}

// Per axis, the source index of each position of the result.
std::vector<std::vector<int64_t>> source_table(const Pad& a, const EvalArgs& e) {
    const Shape& from = e.in[0].shape();
    const Shape& to = e.out[0].shape();
    std::vector<std::vector<int64_t>> table(from.size());
    for (size_t d = 0; d < from.size(); ++d) {
        int64_t low = e.dim(a.low[d]);
        int64_t high = e.dim(a.high[d]);
        require(low >= 0 && high >= 0, ErrorCode::InvalidArgument, "pad: axis ", d,
                " is padded by ", low, " and ", high, ", expected at least 0");
        require(from[d] > 0 || a.mode == "constant" || low + high == 0, ErrorCode::InvalidArgument,
                "pad: axis ", d, " of size 0 has no elements for mode ", a.mode);
        for (int64_t i = 0; i < to[d]; ++i) {
            table[d].push_back(source_of(a.mode, i - low, from[d]));
        }
    }
    return table;
}

// One row along the last axis: `inner` gives the source index of each element; `low` elements
// precede the `size` elements that start at `from`. `from` is null when the whole row is constant.
struct Row {
    std::span<const int64_t> inner;
    size_t low;
    size_t size;
    size_t width;
    const std::byte* value;
};

void fill_row(const Row& r, const std::byte* from, std::byte* to) {
    size_t high = r.low + r.size;
    for (size_t i = 0; i < r.inner.size(); ++i) {
        if (from != nullptr && i == r.low && r.size > 0) {
            std::memcpy(to + i * r.width, from, r.size * r.width);
            i = high;
            if (i == r.inner.size()) {
                break;
            }
        }
        bool inside = from != nullptr && r.inner[i] >= 0;
        const std::byte* source =
            inside ? from + static_cast<size_t>(r.inner[i]) * r.width : r.value;
        std::memcpy(to + i * r.width, source, r.width);
    }
}

void eval_pad(const Pad& a, EvalArgs& e) {
    auto table = source_table(a, e);
    Tensor x = byte_elements(e.in[0]);
    Tensor value = byte_elements(e.in[1]);
    Tensor out = byte_target(e.out[0]);
    if (x.rank() == 0) {
        table.push_back({0});
    }
    auto width = static_cast<size_t>(byte_size(x.dtype(), 1));
    Row row{table.back(), x.rank() == 0 ? 0 : static_cast<size_t>(e.dim(a.low.back())),
            x.rank() == 0 ? 1 : static_cast<size_t>(x.shape().back()), width, value.bytes().data()};
    Shape outer = out.shape();
    outer.resize(table.size() - 1);
    Shape strides = strides_of(x.shape());
    std::byte* to = out.mutable_bytes().data();
    for (Walk<1> w(outer, {Shape(outer.size())}); !w.done(); w.next()) {
        int64_t offset = 0;
        bool inside = true;
        for (size_t d = 0; d < outer.size(); ++d) {
            int64_t at = table[d][static_cast<size_t>(w.at()[d])];
            inside = inside && at >= 0;
            offset += at * strides[d];
        }
        fill_row(row, inside ? x.bytes().data() + static_cast<size_t>(offset) * width : nullptr,
                 to);
        to += row.inner.size() * width;
    }
    store_bytes(out, e.out[0]);
}

} // namespace

const OpDef pad_def = primitive<Pad>(
    "pad", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Pad& a, std::span<const Type> in) { return infer_pad(a, in); },
    [](const Pad& a, EvalArgs& e) { eval_pad(a, e); });

extern const OpTable pad_ops;
static const OpDef* const list[] = {&pad_def};
const OpTable pad_ops = list;

} // namespace ingot
