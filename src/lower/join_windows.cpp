// SPDX-License-Identifier: Apache-2.0
// join_windows: a convolution of few channels along one axis (of a waveform, most often) with steps
// between its windows makes several results at a time, as channels of one position, where its own
// windows do not begin, or end, at multiples of 16 bytes. The joined windows do, so that kernels
// fetch them whole and multiply them as the rows of a product; their weights are those of the
// windows, shifted, and zeros.
#include "base/integers.h"
#include "lower/channel_chain.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <cstring>
#include <numeric>

namespace ingot::plan {

namespace {

constexpr int64_t vector = 8; // elements of 16 bits
constexpr int64_t most_channels = 4;
constexpr int64_t slab = 64; // elements of the depth that tensor cores multiply at least
constexpr double fewest_operations = 1e7; // less does not pay for the copy

/// How windows are joined.
struct Joined {
    int64_t count = 1; // of windows
    int64_t kernel = 0;
    int64_t low = 0, high = 0; // columns that are put around x
};

int64_t slabs(int64_t depth) {
    return (depth + slab - 1) / slab;
}

/// For half precision, with constant weights; nullopt where windows are better left apart.
std::optional<Joined> joined(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_def) ? g.constant(n.inputs[1]) : nullptr;
    if (w == nullptr || w->rank() != 3 || !is_half(w->dtype()) || w->count() == 0) {
        return std::nullopt;
    }
    const auto& a = n.as<ops::Conv>();
    int64_t channels = w->shape()[1];
    int64_t kernel = w->shape()[2];
    int64_t step = a.strides[0];
    std::optional<int64_t> low = a.low[0].as_const();
    std::optional<int64_t> high = a.high[0].as_const();
    bool plain = a.groups == 1 && a.dilations[0] == 1 && kernel > 1 && step > 1 && low && high &&
                 *low >= 0 && *high >= 0 && channels <= most_channels;
    if (!plain) {
        return std::nullopt;
    }
    const Dims& out = g.type(n.outputs[0]).dims;
    double positions = static_cast<double>(out[2].as_const().value_or(1 << 20));
    Joined j;
    j.count = vector / std::gcd(vector, step * channels);
    j.kernel = round_up(kernel + (j.count - 1) * step, vector / std::gcd(vector, channels));
    j.low = *low;
    // So many that there are as many joined windows as results need.
    j.high = *high + j.kernel - kernel;
    bool same = j.count == 1 && j.kernel == kernel && *low == 0 && *high == 0;
    bool worth = 2.0 * static_cast<double>(w->count()) * positions >= fewest_operations &&
                 slabs(j.kernel * channels) <= 2 * slabs(kernel * channels);
    return !same && worth ? std::optional(j) : std::nullopt;
}

/// Weights [results, channels, kernel] as [count * results, channels, joined kernel].
Tensor joined_weights(const Tensor& w, const Joined& j, int64_t step) {
    const Shape& from = w.shape();
    Tensor out = Tensor::zeros(w.dtype(), {j.count * from[0], from[1], j.kernel});
    auto bytes = static_cast<size_t>(bit_width(w.dtype()) / 8);
    auto row = static_cast<size_t>(from[2]) * bytes;
    int64_t rows = from[0] * from[1];
    for (int64_t i = 0; i < j.count * rows; ++i) {
        auto to = static_cast<size_t>(i * j.kernel + i / rows * step) * bytes;
        std::memcpy(out.mutable_bytes().data() + to,
                    w.bytes().data() + static_cast<size_t>(i % rows) * row, row);
    }
    return out;
}

/// Columns of zeros around x; none behind it where the joined windows end inside.
Value padded(Graph& g, Value x, const Joined& j, int64_t step) {
    int64_t high = j.high;
    const Type type = g.type(x);
    if (std::optional<int64_t> columns = type.dims[2].as_const()) {
        int64_t all = *columns + j.low + j.high;
        int64_t end = (all - j.kernel) / (step * j.count) * step * j.count + j.kernel;
        high = std::max<int64_t>(end - *columns - j.low, 0);
        // Images begin at multiples of 16 bytes.
        bool one = type.dims[0].is_const(1);
        high = one || high + j.low == 0
                   ? high
                   : round_up(*columns + j.low + high, vector) - *columns - j.low;
    }
    return j.low + high == 0 ? x : ops::pad(g, x, {0, 0, j.low}, {0, 0, high});
}

Value made(Rewriter& r, const Graph& old, const ChannelChain& chain) {
    Graph& g = r.out();
    const Node& n = *chain.first;
    const Tensor w = *old.constant(n.inputs[1]);
    const Joined j = *joined(old, n);
    ops::Conv a = n.as<ops::Conv>();
    int64_t step = a.strides[0];
    Value x = padded(g, r.mapped(n.inputs[0]), j, step);
    a.low = a.high = {0};
    a.strides[0] = step * j.count;
    Shape shape = {j.count * w.shape()[0], w.shape()[1], j.kernel};
    Tensor weights = Tensor::lazy(w.dtype(), shape,
                                  [w, j, step](ThreadPool&) { return joined_weights(w, j, step); });
    Value y = ops::conv(g, a, x, ops::constant(g, std::move(weights)));
    y = with_maps(g, old, chain, y,
                  [&j](const Tensor& t, size_t axis) { return repeated(t, axis, j.count); });
    const Dims made_dims = g.type(y).dims;
    Dim results(w.shape()[0]);
    if (j.count > 1) {
        y = ops::reshape(g, y, {made_dims[0], Dim(j.count), results, made_dims[2]});
        y = ops::permute(g, y, {0, 2, 3, 1});
        y = ops::reshape(g, y, {made_dims[0], results, made_dims[2] * Dim(j.count)});
    }
    const Dim wanted = old.type(chain.result()).dims[2];
    return g.type(y).dims[2] == wanted ? y : ops::slice(g, y, 2, 0, wanted);
}

} // namespace

Pass join_windows(const KernelSet&) {
    return {
        .name = "join_windows",
        .summary = "convolutions of few channels along one axis make several results at a time",
        .run =
            [](const Graph& g, const PassOptions&) {
                return rewrite_chains(
                    g, [&g](const Node& n) { return joined(g, n).has_value(); },
                    [&g](Rewriter& r, const ChannelChain& chain) { return made(r, g, chain); });
            },
    };
}

} // namespace ingot::plan
