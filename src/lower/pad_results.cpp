// SPDX-License-Identifier: Apache-2.0
// pad_results: a convolution whose last results fill no vector (to 3 colours, as at the end of
// networks that make images) makes further ones of zero weights, and its readers read a part. TMA
// stores whole vectors, without which the kernels that fetch their input once do not run. They
// store 16 bits: a map to wider elements stays behind the part.
#include "base/integers.h"
#include "lower/channel_chain.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>

namespace ingot::plan {

namespace {

constexpr int64_t vector = 8; // elements of 16 bits
/// Fewer results take a launch's time anyway.
constexpr int64_t fewest_positions = 16384;

/// Over two axes, over three of which windows walk the last two, or over those of one volume.
bool is_wanted(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_def) ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || !is_half(w->dtype())) {
        return false;
    }
    const auto& a = n.as<ops::Conv>();
    const Shape& s = w->shape();
    bool one = g.type(n.inputs[0]).dims[0].is_const(1);
    bool axes = w->rank() == 4 || (w->rank() == 5 && (s[2] == 1 || one));
    bool plain = std::ranges::all_of(a.strides, [](int64_t v) { return v == 1; });
    if (!axes || !plain || a.groups != 1 || a.dtype != w->dtype()) {
        return false;
    }
    int64_t positions = 1;
    int64_t taps = 1;
    const Dims& out = g.type(n.outputs[0]).dims;
    for (size_t i = 2; i < out.size(); ++i) {
        positions *= out[i].as_const().value_or(0);
        taps *= s[i];
    }
    return taps > 1 && s[0] % vector != 0 && s[1] % vector == 0 && positions >= fewest_positions;
}

/// With zeros behind the elements along an axis.
Tensor padded(const Tensor& t, size_t axis, int64_t size) {
    Shape shape = t.shape();
    int64_t outer = 1;
    for (size_t i = 0; i < axis; ++i) {
        outer *= shape[i];
    }
    shape[axis] = size;
    Tensor out = Tensor::zeros(t.dtype(), shape);
    size_t from = t.bytes().size() / static_cast<size_t>(outer);
    size_t to = out.bytes().size() / static_cast<size_t>(outer);
    std::byte* data = out.mutable_bytes().data();
    for (size_t i = 0; i < static_cast<size_t>(outer); ++i) {
        std::memcpy(data + i * to, t.bytes().data() + i * from, from);
    }
    return out;
}

Value made(Rewriter& r, const Graph& old, const ChannelChain& chain) {
    Graph& g = r.out();
    const Node& conv = *chain.first;
    const Tensor& w = *old.constant(conv.inputs[1]);
    int64_t results = w.shape()[0];
    int64_t whole = round_up(results, vector);
    Value y = ops::conv(g, conv.as<ops::Conv>(), r.mapped(conv.inputs[0]),
                        ops::constant(g, padded(w, 0, whole)));
    y = with_maps(g, old, chain, y,
                  [whole](const Tensor& t, size_t axis) { return padded(t, axis, whole); });
    return ops::slice(g, y, 1, 0, results);
}

} // namespace

Pass pad_results(const KernelSet&) {
    return {
        .name = "pad_results",
        .summary = "convolutions to few results make whole vectors of them",
        .run =
            [](const Graph& g, const PassOptions&) {
                return rewrite_chains(
                    g, [&g](const Node& n) { return is_wanted(g, n); },
                    [&g](Rewriter& r, const ChannelChain& chain) { return made(r, g, chain); },
                    is_half);
            },
        .structural = true,
    };
}

} // namespace ingot::plan
