// SPDX-License-Identifier: Apache-2.0
// pad_columns: the input of a convolution is padded along its rows by a copy, where windows are
// wide and of few channels, or lie on a line with steps between them. A row of a window is then one
// run in memory, which kernels multiply in full slabs (conv_wgmma) instead of tap by tap.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <numeric>
#include <utility>

namespace ingot::plan {

namespace {

constexpr int64_t vector = 8; // elements of 16 bits
constexpr int64_t most_channels = 32;
constexpr int64_t least_width = 5;
constexpr double fewest_operations = 3e8; // less does not pay for the copy
constexpr double fewest_on_lines = 5e7;   // where kernels cannot do without it

/// Whether steps along a line lead from whole groups of columns to whole groups, which kernels walk
/// as channels of one column, or as pairs: those need no padding in memory.
bool in_groups(const ops::Conv& a, int64_t kernel, const Dim& columns) {
    std::optional<int64_t> low = a.low[0].as_const();
    std::optional<int64_t> in = columns.as_const();
    if (!low || !in) {
        return true; // as the length that a run has may be
    }
    int64_t step = a.strides[0];
    return step <= 2 * std::gcd(std::gcd(step, kernel), *low) && *in % step == 0;
}

/// Whether the copy pays for `operations`.
bool is_wanted(const ops::Conv& a, const Shape& w, const Dims& x, double operations) {
    size_t last = a.strides.size() - 1;
    bool padded = !(a.low[last].is_const(0) && a.high[last].is_const(0));
    bool plain = a.groups == 1 && a.dilations[last] == 1 && w[1] % vector == 0;
    if (!padded || !plain) {
        return false;
    }
    if (w.size() == 3) {
        return a.strides[0] > 1 && w[2] > 1 && operations >= fewest_on_lines &&
               !in_groups(a, w[2], x[2]);
    }
    return w[1] <= most_channels && w[3] >= least_width && operations >= fewest_operations;
}

std::optional<Values> pad(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    const Tensor* w = n.is(ops::conv_def) ? g.constant(in[1]) : nullptr;
    if (w == nullptr || w->rank() < 3 || w->rank() > 4 || !is_half(w->dtype())) {
        return std::nullopt;
    }
    ops::Conv a = n.as<ops::Conv>();
    const Dims& out = r.from().type(n.outputs[0]).dims;
    double operations = 2.0 * static_cast<double>(w->count());
    for (size_t i = 2; i < out.size(); ++i) {
        operations *= static_cast<double>(out[i].as_const().value_or(1));
    }
    if (!is_wanted(a, w->shape(), g.type(in[0]).dims, operations)) {
        return std::nullopt;
    }
    Dims low(out.size(), 0);
    Dims high = low;
    std::swap(low.back(), a.low.back());
    std::swap(high.back(), a.high.back());
    Value x = ops::pad(g, in[0], low, high);
    return Values{ops::conv(g, a, x, in[1])};
}

} // namespace

Pass pad_columns(const KernelSet&) {
    return {
        .name = "pad_columns",
        .summary =
            "convolutions with wide windows, or on lines with steps, read rows padded before",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, pad)); },
        .structural = true,
    };
}

} // namespace ingot::plan
