// SPDX-License-Identifier: Apache-2.0
// join_groups: a convolution with few channels a group becomes one with fewer, wider groups, whose
// constant weights are zero between channels of different groups. Kernels multiply tiles of 64
// columns: a narrower group pays for a whole tile, and its runs of channels are too short for wide
// copies. An infinity or NaN reaches the results of all groups joined with its own.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>

namespace ingot::plan {

namespace {

/// Wider groups fill copies and half a tile on their own.
constexpr int64_t most_channels = 16;
/// The width of a joined group: a tile's columns, and a step of the depth in 16 bits.
constexpr int64_t joined_channels = 64;

/// The number of groups that become one: a divisor of `groups`. Groups stay as they are
/// where the joined one would be less than half full, unless one group is left.
int64_t groups_in_one(int64_t groups, int64_t channels, int64_t results) {
    int64_t wider = std::max(channels, results);
    int64_t n = std::min(joined_channels / wider, groups);
    while (n > 1 && groups % n != 0) {
        --n;
    }
    return n == groups || 2 * n * wider >= joined_channels ? n : 1;
}

/// Weights [results, channels, window...] as blocks on the diagonal of wider groups.
Tensor on_diagonal(const Tensor& w, int64_t results, int64_t in_one) {
    Shape shape = w.shape();
    auto block = w.bytes().size() / static_cast<size_t>(shape[0]);
    shape[1] *= in_one;
    Tensor out = Tensor::zeros(w.dtype(), shape);
    std::byte* to = out.mutable_bytes().data();
    for (int64_t n = 0; n < shape[0]; ++n) {
        auto place = static_cast<size_t>(n * in_one + n / results % in_one);
        std::memcpy(to + place * block, w.bytes().data() + static_cast<size_t>(n) * block, block);
    }
    return out;
}

std::optional<Values> join(Rewriter& r, const Node& n, std::span<const Value> in) {
    const Tensor* w = n.is(ops::conv_def) ? r.out().constant(in[1]) : nullptr;
    if (w == nullptr || !is_float(w->dtype()) || bit_width(w->dtype()) > 32 ||
        bit_width(w->dtype()) < 16 || w->count() == 0) {
        return std::nullopt;
    }
    ops::Conv a = n.as<ops::Conv>();
    int64_t channels = w->shape()[1];
    int64_t results = w->shape()[0] / a.groups;
    bool narrow = channels > 1 && channels <= most_channels; // one channel: depthwise kernels
    int64_t in_one = narrow ? groups_in_one(a.groups, channels, results) : 1;
    if (in_one == 1) {
        return std::nullopt;
    }
    a.groups /= in_one;
    Value joined = ops::constant(r.out(), on_diagonal(*w, results, in_one));
    return Values{ops::conv(r.out(), std::move(a), in[0], joined)};
}

} // namespace

Pass join_groups(const KernelSet&) {
    return {
        .name = "join_groups",
        .summary = "narrow groups of a convolution become wider ones with zeros between",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, join)); },
    };
}

} // namespace ingot::plan
