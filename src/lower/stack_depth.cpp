// SPDX-License-Identifier: Apache-2.0
// stack_depth: a convolution over three axes becomes one over two, whose channels are those of its
// positions along the first axis, side by side. Kernels for two axes fetch whole boxes of their
// input (conv_wgmma) and take a third of the time; the input is written once for each position.
// They take whole vectors of channels: behind few ones there are channels of zeros, but not where
// windows lie apart, as patches do, which other kernels gather. In one volume, kernels may walk all
// three axes (PassOptions::volume_slab): they need no copies, but read a slab for each position.
#include "base/integers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>

namespace ingot::plan {

namespace {

/// A larger input is copied for longer than that saves.
constexpr int64_t most_channels = 8192;
/// The kernel for few channels takes up to these without vectors.
constexpr int64_t few_channels = 4;
/// Kernels take as long for fewer results.
constexpr int64_t fewest_results = 8;

struct Deep {
    int64_t depth, results;           // positions along the first axis: of the input, of the result
    int64_t kernel, stride, dilation; // along it
    int64_t low;
    int64_t zeros;     // channels
    double operations; // of the convolution
};

/// Channels that `channels` lack of whole vectors of 16 bytes.
int64_t zero_channels(int64_t channels, DType type) {
    int64_t vector = 128 / bit_width(type);
    return channels <= few_channels ? 0 : round_up(channels, vector) - channels;
}

std::optional<Deep> deep(const Graph& g, const Node& n) {
    const Tensor* w = g.constant(n.inputs[1]);
    const Type& x = g.type(n.inputs[0]);
    if (w == nullptr || w->rank() != 5 || bit_width(w->dtype()) < 16 || !is_float(w->dtype())) {
        return std::nullopt;
    }
    const auto& a = n.as<ops::Conv>();
    const Shape& s = w->shape();
    std::optional<int64_t> low = a.low[0].as_const();
    std::optional<int64_t> depth = x.dims[2].as_const();
    std::optional<int64_t> results = g.type(n.outputs[0]).dims[2].as_const();
    bool fits = a.groups == 1 && s[2] > 1 && s[3] * s[4] > 1 && x.dtype == w->dtype() &&
                a.dtype == x.dtype && low && depth && results && *results > 0 &&
                s[1] * s[2] <= most_channels;
    if (!fits) {
        return std::nullopt;
    }
    double operations = 2.0 * static_cast<double>(w->count()) * static_cast<double>(*results);
    operations *= static_cast<double>(std::max(s[0], fewest_results)) / static_cast<double>(s[0]);
    for (size_t i = 3; i < 5; ++i) {
        operations *= static_cast<double>(g.type(n.outputs[0]).dims[i].as_const().value_or(100));
    }
    bool adjacent = a.strides[1] == 1 && a.strides[2] == 1;
    int64_t zeros = adjacent ? zero_channels(s[1] * s[2], x.dtype) : 0;
    return Deep{*depth, *results, s[2], a.strides[0], a.dilations[0], *low, zeros, operations};
}

/// Whether a kernel that walks the three axes of one volume takes the convolution in less time than
/// copies and products of what lies side by side, by the model of costs.
bool is_walked(const Graph& g, const Node& n, int64_t slab_bytes) {
    // Copies take as long as the products of so many results.
    constexpr double copied_results = 40;
    constexpr int64_t least_results = 128;
    const Type& x = g.type(n.inputs[0]);
    const Shape& w = g.constant(n.inputs[1])->shape();
    const auto& a = n.as<ops::Conv>();
    int64_t bytes = w[1] * bit_width(x.dtype) / 8;
    bool adjacent =
        std::all_of(a.strides.begin(), a.strides.end(), [](int64_t s) { return s == 1; });
    if (slab_bytes == 0 || !adjacent || !x.dims[0].is_const(1) || bytes % 16 != 0) {
        return false;
    }
    // Kernels multiply 32 bytes at a time, and a slab as often as any other of the convolution.
    auto products = [&](int64_t count) {
        constexpr int64_t each = 32;
        int64_t in_slab = is_half(x.dtype) ? std::min(count, slab_bytes) : slab_bytes;
        return static_cast<double>(div_up(count, slab_bytes) * div_up(in_slab, each));
    };
    auto results = static_cast<double>(std::max(w[0], least_results));
    double apart = static_cast<double>(w[2]) * products(bytes);
    return apart <= products(w[2] * bytes) * (1 + copied_results / results);
}

/// The elements that position `tap` of windows meets, for each result: zeros outside of x.
Value met_by(Graph& g, Value x, const Deep& d, int64_t tap) {
    int64_t from = tap * d.dilation - d.low; // of the first result
    int64_t before = from < 0 ? std::min(d.results, (-from + d.stride - 1) / d.stride) : 0;
    int64_t first = from + before * d.stride;
    int64_t inside = first < d.depth ? (d.depth - 1 - first) / d.stride + 1 : 0;
    inside = std::min(inside, d.results - before);
    auto zeros = [&](int64_t count) {
        Dims dims = g.type(x).dims;
        dims[2] = count;
        return ops::full(g, g.type(x).dtype, dims, 0);
    };
    Values parts;
    if (before > 0) {
        parts.push_back(zeros(before));
    }
    if (inside > 0) {
        parts.push_back(ops::slice(g, x, 2, first, inside, d.stride));
    }
    if (before + inside < d.results) {
        parts.push_back(zeros(d.results - before - inside));
    }
    return parts.size() == 1 ? parts[0] : ops::concat(g, parts, 2);
}

/// [results, channels, depth, ...] as [results, depth * channels, 1, ...], with zeros behind the
/// channels.
Tensor stacked(const Tensor& w, int64_t zeros) {
    Shape s = w.shape();
    Tensor out = Tensor::zeros(w.dtype(), {s[0], s[2] * s[1] + zeros, 1, s[3], s[4]});
    size_t block = w.bytes().size() / static_cast<size_t>(s[0] * s[1] * s[2]);
    std::byte* to = out.mutable_bytes().data();
    for (int64_t r = 0; r < s[0]; ++r) {
        for (int64_t k = 0; k < s[2]; ++k) {
            for (int64_t c = 0; c < s[1]; ++c) {
                auto from = static_cast<size_t>((r * s[1] + c) * s[2] + k) * block;
                std::memcpy(to, w.bytes().data() + from, block);
                to += block;
            }
        }
        to += block * static_cast<size_t>(zeros);
    }
    return out;
}

Values stack(Graph& g, const Node& n, std::span<const Value> in, const Deep& d) {
    Values parts;
    for (int64_t tap = 0; tap < d.kernel; ++tap) {
        parts.push_back(met_by(g, in[0], d, tap));
    }
    if (d.zeros > 0) {
        Dims dims = g.type(parts[0]).dims;
        dims[1] = d.zeros;
        parts.push_back(ops::full(g, g.type(in[0]).dtype, dims, 0));
    }
    auto a = n.as<ops::Conv>();
    a.strides[0] = a.dilations[0] = 1;
    a.low[0] = a.high[0] = 0;
    Tensor w = stacked(*g.constant(in[1]), d.zeros);
    return {ops::conv(g, a, ops::concat(g, parts, 1), ops::constant(g, std::move(w)))};
}

Graph without_depth(const Graph& g, const PassOptions& o) {
    return dead_code(rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        std::optional<Deep> d = n.is(ops::conv_def) ? deep(g, n) : std::nullopt;
        bool single = d && g.type(n.inputs[0]).dtype == DType::F32;
        bool pays = d && d->operations >= (single ? o.flat_f32_convolutions : o.flat_convolutions);
        pays = pays && !is_walked(g, n, o.volume_slab);
        return pays ? std::optional(stack(r.out(), n, in, *d)) : std::nullopt;
    }));
}

} // namespace

Pass stack_depth(const KernelSet&) {
    return {
        .name = "stack_depth",
        .summary = "convolutions over three axes become convolutions over two with more channels",
        .run = without_depth,
    };
}

} // namespace ingot::plan
