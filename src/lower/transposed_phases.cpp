// SPDX-License-Identifier: Apache-2.0
// transposed_phases: a transposed convolution with steps becomes a convolution that makes all
// results between two elements of its input, the phases, as channels of one position; a copy puts
// them beside each other. No zeros are put between elements, nor multiplied.
#include "lower/channel_chain.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <cstring>

namespace ingot::plan {

namespace {

using ops::ConvTranspose;

/// The elements of x that an element of the result meets along an axis, at most.
int64_t taps_of(const Shape& w, const ConvTranspose& a, size_t axis) {
    return (w[axis + 2] + a.strides[axis] - 1) / a.strides[axis];
}

bool is_wanted(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_transpose_def) ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || !is_float(w->dtype()) || bit_width(w->dtype()) < 16 ||
        bit_width(w->dtype()) > 32 || w->count() == 0) {
        return false;
    }
    const auto& a = n.as<ConvTranspose>();
    bool steps = false;
    for (size_t i = 0; i < a.strides.size(); ++i) {
        std::optional<int64_t> low = a.low[i].as_const();
        std::optional<int64_t> high = a.high[i].as_const();
        int64_t taps = taps_of(w->shape(), a, i);
        // The result is a part of what all positions make.
        bool inside = low && high && *low >= 0 && w->shape()[i + 2] - *high <= taps * a.strides[i];
        if (!inside || a.dilations[i] != 1) {
            return false;
        }
        steps = steps || a.strides[i] > 1;
    }
    return steps && a.groups == 1;
}

/// Weights [channels, results, kernel...] as [phases * results, channels, taps...].
Tensor by_phase(const Tensor& w, const ConvTranspose& a) {
    const Shape& from = w.shape();
    size_t axes = a.strides.size();
    Shape taps;
    int64_t phases = 1;
    for (size_t i = 0; i < axes; ++i) {
        taps.push_back(taps_of(from, a, i));
        phases *= a.strides[i];
    }
    Shape shape = {phases * from[1], from[0]};
    shape.insert(shape.end(), taps.begin(), taps.end());
    Tensor out = Tensor::zeros(w.dtype(), shape);
    auto bytes = static_cast<size_t>(bit_width(w.dtype()) / 8);
    int64_t window = 1;
    for (int64_t t : taps) {
        window *= t;
    }
    std::byte* to = out.mutable_bytes().data();
    for (int64_t i = 0; i < out.count(); ++i) {
        int64_t tap = i % window;
        int64_t channel = i / window % from[0];
        int64_t result = i / window / from[0] % from[1];
        int64_t phase = i / window / from[0] / from[1];
        int64_t at = 0; // in the kernel
        int64_t step = 1;
        bool inside = true;
        for (size_t axis = axes; axis-- > 0;) {
            int64_t s = a.strides[axis];
            int64_t k = (taps[axis] - 1 - tap % taps[axis]) * s + phase % s;
            inside = inside && k < from[axis + 2];
            at += k * step;
            step *= from[axis + 2];
            tap /= taps[axis];
            phase /= s;
        }
        if (inside) {
            std::memcpy(to + static_cast<size_t>(i) * bytes,
                        w.bytes().data() +
                            static_cast<size_t>((channel * from[1] + result) * step + at) * bytes,
                        bytes);
        }
    }
    return out;
}

Value made(Rewriter& r, const Graph& old, const ChannelChain& chain) {
    Graph& g = r.out();
    const Node& n = *chain.first;
    const auto& a = n.as<ConvTranspose>();
    const Tensor w = *old.constant(n.inputs[1]);
    Value x = r.mapped(n.inputs[0]);
    size_t axes = a.strides.size();
    int64_t results = w.shape()[1];
    int64_t phases = 1;
    ops::Conv c;
    c.strides.assign(axes, 1);
    c.dilations.assign(axes, 1);
    c.dtype = old.type(n.outputs[0]).dtype;
    Dims split = {g.type(x).dims[0]}; // N, phases..., results, positions...
    Dims whole = {g.type(x).dims[0], Dim(results)};
    std::vector<int64_t> perm = {0, static_cast<int64_t>(axes) + 1};
    Dims positions;
    for (size_t i = 0; i < axes; ++i) {
        int64_t taps = taps_of(w.shape(), a, i);
        c.low.emplace_back(taps - 1);
        c.high.emplace_back(taps - 1);
        phases *= a.strides[i];
        split.emplace_back(a.strides[i]);
        positions.push_back(g.type(x).dims[i + 2] + Dim(taps - 1));
        whole.push_back(positions.back() * Dim(a.strides[i]));
        perm.push_back(static_cast<int64_t>(axes + 2 + i));
        perm.push_back(static_cast<int64_t>(i) + 1);
    }
    split.emplace_back(results);
    split.insert(split.end(), positions.begin(), positions.end());
    Shape shape = {phases * results, w.shape()[0]};
    for (size_t i = 0; i < axes; ++i) {
        shape.push_back(taps_of(w.shape(), a, i));
    }
    Tensor weights = Tensor::lazy(w.dtype(), shape, [w, a](ThreadPool&) { return by_phase(w, a); });
    Value y = ops::conv(g, c, x, ops::constant(g, std::move(weights)));
    y = with_maps(g, old, chain, y,
                  [phases](const Tensor& t, size_t axis) { return repeated(t, axis, phases); });
    y = ops::reshape(g, ops::permute(g, ops::reshape(g, y, split), perm), whole);
    const Dims wanted = old.type(chain.result()).dims;
    for (size_t i = 0; i < axes; ++i) {
        if (!(wanted[i + 2] == whole[i + 2])) {
            y = ops::slice(g, y, static_cast<int64_t>(i) + 2, a.low[i], wanted[i + 2]);
        }
    }
    return y;
}

} // namespace

Pass transposed_phases(const KernelSet&) {
    return {
        .name = "transposed_phases",
        .summary = "transposed convolutions make the results between two elements as channels",
        .run =
            [](const Graph& g, const PassOptions&) {
                return rewrite_chains(
                    g, [&g](const Node& n) { return is_wanted(g, n); },
                    [&g](Rewriter& r, const ChannelChain& chain) { return made(r, g, chain); });
            },
    };
}

} // namespace ingot::plan
