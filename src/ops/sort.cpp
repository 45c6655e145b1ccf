// SPDX-License-Identifier: Apache-2.0
// sort: stable, along an axis, with the indices of the elements.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <algorithm>
#include <numeric>

namespace ingot {

using eval_util::AxisSplit;
using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::read;
using eval_util::require_axis;
using eval_util::require_inputs;
using eval_util::split_at;
using eval_util::store_bytes;
using eval_util::with_wide;

namespace {

std::vector<Type> infer_sort(const Sort& a, std::span<const Type> in) {
    require_inputs("sort", in, 1);
    require_axis("sort", a.axis, in[0]);
    return {in[0], {DType::I64, in[0].dims}};
}

/// Orders NaN above all numbers.
template <class W>
bool less(W a, W b) {
    return a < b || (a == a && b != b);
}

template <class W>
void sort_slabs(const Sort& a, const Tensor& x, std::span<int64_t> indices) {
    AxisSplit s = split_at(x.shape(), a.axis);
    auto inner = static_cast<size_t>(s.inner);
    std::vector<W> slab(static_cast<size_t>(s.size) * inner);
    std::vector<int64_t> order(static_cast<size_t>(s.size));
    for (int64_t o = 0; o < s.outer; ++o) {
        read(x, o * s.size * s.inner, std::span<W>(slab));
        for (size_t i = 0; i < inner; ++i) {
            auto key = [&](int64_t k) { return slab[static_cast<size_t>(k) * inner + i]; };
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](int64_t l, int64_t r) {
                return a.descending ? less(key(r), key(l)) : less(key(l), key(r));
            });
            for (size_t k = 0; k < order.size(); ++k) {
                indices[(static_cast<size_t>(o * s.size) + k) * inner + i] = order[k];
            }
        }
    }
}

void eval_sort(const Sort& a, EvalArgs& e) {
    const Tensor& x = e.in[0];
    auto indices = e.out[1].as_mutable<int64_t>();
    with_wide(x.dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        sort_slabs<W>(a, x, indices);
    });
    Tensor from = byte_elements(x);
    Tensor to = byte_target(e.out[0]);
    AxisSplit s = split_at(x.shape(), a.axis);
    auto width = static_cast<size_t>(byte_size(from.dtype(), 1));
    std::byte* out = to.mutable_bytes().data();
    for (size_t i = 0; i < indices.size(); ++i, out += width) {
        auto linear = static_cast<int64_t>(i);
        int64_t slab = linear / (s.size * s.inner) * s.size;
        int64_t source = (slab + indices[i]) * s.inner + linear % s.inner;
        std::memcpy(out, from.bytes().data() + static_cast<size_t>(source) * width, width);
    }
    store_bytes(to, e.out[0]);
}

} // namespace

const OpDef sort_def = primitive<Sort>(
    "sort", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const Sort& a, std::span<const Type> in) { return infer_sort(a, in); },
    [](const Sort& a, EvalArgs& e) { eval_sort(a, e); });

extern const OpTable sort_ops;
static const OpDef* const list[] = {&sort_def};
const OpTable sort_ops = list;

} // namespace ingot
