// SPDX-License-Identifier: Apache-2.0
// repeat_channels: a convolution that makes several channels of each one (a depthwise one with a
// multiplier) becomes depthwise, of the channels repeated. Depthwise kernels take a twentieth of
// the time of those that multiply matrices of one channel; the copy writes as much as the result.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

std::optional<Values> repeat(Rewriter& r, const Node& n, std::span<const Value> in) {
    const Tensor* w = n.is(ops::conv_def) ? r.out().constant(in[1]) : nullptr;
    if (w == nullptr || !is_float(w->dtype()) || bit_width(w->dtype()) > 32 || w->shape()[1] != 1) {
        return std::nullopt;
    }
    ops::Conv a = n.as<ops::Conv>();
    int64_t results = w->shape()[0];
    Graph& g = r.out();
    bool known = g.type(in[0]).dims[1].is_const(a.groups);
    if (a.groups == 1 || results <= a.groups || results % a.groups != 0 || !known) {
        return std::nullopt;
    }
    Dims dims = g.type(in[0]).dims;
    dims.insert(dims.begin() + 2, Dim(results / a.groups));
    Value x = ops::broadcast_to(g, ops::unsqueeze(g, in[0], {2}), dims);
    dims.erase(dims.begin() + 2);
    dims[1] = results;
    a.groups = results;
    return Values{ops::conv(g, a, ops::reshape(g, x, dims), in[1])};
}

Graph repeat_all(const Graph& g, const PassOptions&) {
    return dead_code(rewrite(g, repeat));
}

} // namespace

Pass repeat_channels(const KernelSet&) {
    return {
        .name = "repeat_channels",
        .summary =
            "depthwise convolutions with a multiplier become plain ones of repeated channels",
        .run = repeat_all,
        .structural = true,
    };
}

} // namespace ingot::plan
