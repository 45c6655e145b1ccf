// SPDX-License-Identifier: Apache-2.0
// scan: running sum, product, minimum or maximum along an axis.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::AxisSplit;
using eval_util::combine_identity;
using eval_util::read;
using eval_util::require_axis;
using eval_util::require_combine;
using eval_util::require_inputs;
using eval_util::split_at;
using eval_util::with_combine;
using eval_util::with_wide;
using eval_util::write;

namespace {

std::vector<Type> infer_scan(const Scan& a, std::span<const Type> in) {
    require_inputs("scan", in, 1);
    require_combine("scan", a.fn, in[0]);
    require_axis("scan", a.axis, in[0]);
    return {in[0]};
}

// Only stored values are rounded; the running value is not.
template <class W, class F>
void scan_slabs(const Scan& a, const Tensor& x, Tensor& out, F combine) {
    AxisSplit s = split_at(x.shape(), a.axis);
    auto inner = static_cast<size_t>(s.inner);
    std::vector<W> slab(static_cast<size_t>(s.size) * inner);
    for (int64_t o = 0; o < s.outer; ++o) {
        int64_t begin = o * s.size * s.inner;
        read(x, begin, std::span<W>(slab));
        std::vector<W> running(inner, combine_identity<W>(a.fn, x.dtype()));
        for (int64_t k = 0; k < s.size; ++k) {
            W* row = slab.data() + static_cast<size_t>(a.reverse ? s.size - 1 - k : k) * inner;
            for (size_t i = 0; i < inner; ++i) {
                W before = running[i];
                running[i] = combine(before, row[i]);
                row[i] = a.exclusive ? before : running[i];
            }
        }
        write(std::span<const W>(slab), begin, out);
    }
}

void eval_scan(const Scan& a, EvalArgs& e) {
    with_wide(e.in[0].dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        with_combine(a.fn, [&](auto combine) { scan_slabs<W>(a, e.in[0], e.out[0], combine); });
    });
}

} // namespace

const OpDef scan_def = primitive<Scan>(
    "scan",
    {Rounding::Matters,
     [](const Graph&, const Node& n) {
         bool grows = n.as<Scan>().fn == "sum" || n.as<Scan>().fn == "prod";
         return grows ? InHalf::Wide : InHalf::Narrow;
     },
     like_result},
    [](const Scan& a, std::span<const Type> in) { return infer_scan(a, in); },
    [](const Scan& a, EvalArgs& e) { eval_scan(a, e); });

extern const OpTable scan_ops;
static const OpDef* const list[] = {&scan_def};
const OpTable scan_ops = list;

} // namespace ingot
