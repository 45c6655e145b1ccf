// SPDX-License-Identifier: Apache-2.0
// dequantized_constants: for backends without integer products, dequantises narrow constant weights
// once, so that kernels can pack them.
#include "ir/rewrite.h"
#include "lower/dequantised.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

/// In total; weights beyond it stay narrow in memory and are dequantised in each run.
constexpr int64_t most_bytes = int64_t{1} << 30;

bool is_narrow(DType t) {
    return bit_width(t) <= 8 && t != DType::Bool;
}

Graph dequantised(const Graph& g) {
    int64_t bytes = 0;
    return dead_code(rewrite_all(g, [&](const Graph& part) {
        return rewrite(part, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
            const Graph& out = r.out();
            const Tensor* q = n.is(ops::dequantize_def) ? out.constant(in[0]) : nullptr;
            const Tensor* scale = q == nullptr ? nullptr : out.constant(in[1]);
            const Tensor* zero = in.size() == 3 ? out.constant(in[2]) : nullptr;
            bool fits = scale != nullptr && scale->dtype() == DType::F32 && is_narrow(q->dtype()) &&
                        n.as<ops::Dequantize>().dtype == DType::F32 &&
                        (in.size() < 3 || zero != nullptr) && bytes + q->count() * 4 <= most_bytes;
            if (!fits) {
                return std::optional<Values>();
            }
            bytes += q->count() * 4;
            Tensor wide = dequantised_constant(*q, *scale, zero, n.as<ops::Dequantize>());
            return std::optional(Values{ops::constant(r.out(), std::move(wide))});
        });
    }));
}

} // namespace

Pass dequantized_constants(const KernelSet&) {
    return {
        .name = "dequantized_constants",
        .summary = "constants that are dequantised become floats, up to 1 GiB of them",
        .run = [](const Graph& g, const PassOptions&) { return dequantised(g); },
        .handles_bodies = true,
    };
}

} // namespace ingot::plan
