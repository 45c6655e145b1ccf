// SPDX-License-Identifier: Apache-2.0
// pad_columns: the input of a convolution with wide windows of few channels is padded along its
// rows by a copy. A row of a window is then one run in memory, which kernels multiply in full slabs
// (conv_wgmma) instead of tap by tap.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

constexpr int64_t vector = 8; // elements of 16 bits
constexpr int64_t most_channels = 32;
constexpr int64_t least_width = 5;
constexpr double fewest_operations = 3e8; // less does not pay for the copy

std::optional<Values> pad(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    const Tensor* w = n.is(ops::conv_def) ? g.constant(in[1]) : nullptr;
    if (w == nullptr || w->rank() != 4 || !is_half(w->dtype())) {
        return std::nullopt;
    }
    ops::Conv a = n.as<ops::Conv>();
    const Shape& s = w->shape();
    const Dims& out = r.from().type(n.outputs[0]).dims;
    double operations = 2.0 * static_cast<double>(w->count()) *
                        static_cast<double>(out[2].as_const().value_or(1)) *
                        static_cast<double>(out[3].as_const().value_or(1));
    bool narrow = a.groups == 1 && s[1] <= most_channels && s[1] % vector == 0;
    bool wide = s[3] >= least_width && a.dilations[1] == 1 && operations >= fewest_operations;
    bool padded = !(a.low[1].is_const(0) && a.high[1].is_const(0));
    if (!narrow || !wide || !padded) {
        return std::nullopt;
    }
    Value x = ops::pad(g, in[0], {0, 0, 0, a.low[1]}, {0, 0, 0, a.high[1]});
    a.low[1] = a.high[1] = 0;
    return Values{ops::conv(g, a, x, in[1])};
}

} // namespace

Pass pad_columns(const KernelSet&) {
    return {
        .name = "pad_columns",
        .summary =
            "convolutions with wide windows of few channels read rows that are padded before",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, pad)); },
        .structural = true,
    };
}

} // namespace ingot::plan
