// SPDX-License-Identifier: Apache-2.0
// nonzero: the coordinates of all elements that are not zero.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::deliver;
using eval_util::for_chunks;
using eval_util::require_inputs;
using eval_util::with_wide;

namespace {

void eval_nonzero(EvalArgs& e) {
    const Tensor& x = e.in[0];
    std::vector<int64_t> found;
    with_wide(x.dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        for_chunks<W>(x, [&](int64_t begin, std::span<const W> part) {
            for (size_t i = 0; i < part.size(); ++i) {
                if (part[i] != W(0)) {
                    found.push_back(begin + static_cast<int64_t>(i));
                }
            }
        });
    });
    Tensor out = Tensor::empty(DType::I64, {x.rank(), static_cast<int64_t>(found.size())});
    auto to = out.as_mutable<int64_t>();
    for (size_t d = x.shape().size(); d-- > 0;) {
        for (size_t i = 0; i < found.size(); ++i) {
            to[d * found.size() + i] = found[i] % x.shape()[d];
            found[i] /= x.shape()[d];
        }
    }
    deliver(e, 0, out, "nonzero");
}

} // namespace

const OpDef nonzero_def = primitive<NonZero>(
    "nonzero", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const NonZero& a, std::span<const Type> in) {
        require_inputs("nonzero", in, 1);
        return std::vector<Type>{{DType::I64, {Dim(in[0].rank()), a.count}}};
    },
    [](const NonZero&, EvalArgs& e) { eval_nonzero(e); });

extern const OpTable nonzero_ops;
static const OpDef* const list[] = {&nonzero_def};
const OpTable nonzero_ops = list;

} // namespace ingot
