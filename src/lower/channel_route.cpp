// SPDX-License-Identifier: Apache-2.0
#include "lower/channel_route.h"

#include "base/error.h"
#include "ops/primitives.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

bool is_before(Value a, Value b) {
    return a.id < b.id;
}

/// How many axes behind the first, from which on the dims are `rest`, have `count` elements.
std::optional<std::vector<int64_t>> axes_with(const Dims& dims, std::span<const Dim> rest,
                                              int64_t count) {
    if (dims.size() < rest.size() + 2 ||
        !std::equal(rest.begin(), rest.end(), dims.end() - static_cast<int64_t>(rest.size()))) {
        return std::nullopt;
    }
    std::vector<int64_t> axes;
    int64_t product = 1;
    for (size_t i = 1; i + rest.size() < dims.size(); ++i) {
        std::optional<int64_t> d = dims[i].as_const();
        if (!d || *d <= 0 || *d > count) {
            return std::nullopt;
        }
        axes.push_back(*d);
        product *= *d;
    }
    return product == count ? std::optional(axes) : std::nullopt;
}

} // namespace

std::span<const Value> ChannelRoute::run() const {
    auto [first, last] = std::minmax_element(
        channels.begin(), channels.end(),
        [](const Channel& a, const Channel& b) { return is_before(a.of, b.of); });
    auto begin = std::lower_bound(family.begin(), family.end(), first->of, is_before);
    auto end = std::upper_bound(family.begin(), family.end(), last->of, is_before);
    return {begin, end};
}

std::optional<ChannelRoute> own_channels(const Graph& g, Value v) {
    const Dims& dims = g.type(v).dims;
    std::optional<int64_t> count = dims.size() >= 3 ? dims[1].as_const() : std::nullopt;
    if (!count || *count <= 0) {
        return std::nullopt;
    }
    ChannelRoute r;
    for (int64_t i = 0; i < *count; ++i) {
        r.channels.push_back({v, i});
    }
    r.family = {v};
    r.axes = {*count};
    return r;
}

ChannelRoute concat_of(std::span<const ChannelRoute> parts) {
    ChannelRoute out;
    for (const ChannelRoute& r : parts) {
        out.channels.insert(out.channels.end(), r.channels.begin(), r.channels.end());
        out.family.insert(out.family.end(), r.family.begin(), r.family.end());
        out.is_shuffled = out.is_shuffled || r.is_shuffled;
        out.is_padded = out.is_padded || r.is_padded;
    }
    std::sort(out.family.begin(), out.family.end(), is_before);
    out.family.erase(std::unique(out.family.begin(), out.family.end()), out.family.end());
    out.axes = {out.count()};
    return out;
}

std::optional<ChannelRoute> through_slice(const Graph& g, const Node& n, const ChannelRoute& r) {
    const auto& a = n.as<Slice>();
    const Dims& dims = g.type(n.inputs[0]).dims;
    std::optional<int64_t> start = a.starts[1].as_const();
    std::optional<int64_t> size = a.sizes[1].as_const();
    bool fits = r.is_flat() && start && size && *size > 0;
    for (size_t i = 0; fits && i < dims.size(); ++i) {
        fits = i == 1 || (a.starts[i].is_const(0) && a.sizes[i] == dims[i] && a.steps[i] == 1);
    }
    if (!fits) {
        return std::nullopt;
    }
    ChannelRoute out = r;
    out.channels.clear();
    for (int64_t i = 0; i < *size; ++i) {
        out.channels.push_back(r.channels.at(static_cast<size_t>(*start + i * a.steps[1])));
    }
    out.axes = {*size};
    return out;
}

std::optional<ChannelRoute> through_reshape(const Graph& g, const Node& n, const ChannelRoute& r) {
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dims& to = g.type(n.outputs[0]).dims;
    if (to.empty() || from[0] != to[0]) {
        return std::nullopt;
    }
    std::span rest = std::span(from).subspan(1 + r.axes.size());
    std::optional<std::vector<int64_t>> axes = axes_with(to, rest, r.count());
    if (!axes) {
        return std::nullopt;
    }
    ChannelRoute out = r;
    out.axes = *axes;
    return out;
}

std::optional<ChannelRoute> through_permute(const Node& n, const ChannelRoute& r) {
    const std::vector<int64_t>& perm = n.as<Permute>().perm;
    auto end = static_cast<int64_t>(1 + r.axes.size());
    for (int64_t i = 0; i < static_cast<int64_t>(perm.size()); ++i) {
        int64_t from = perm[static_cast<size_t>(i)];
        bool is_channel = i > 0 && i < end;
        if (is_channel ? from < 1 || from >= end : from != i) {
            return std::nullopt;
        }
    }
    ChannelRoute out = r;
    std::vector<int64_t> steps(r.axes.size(), 1); // of the axes that are permuted
    for (size_t i = r.axes.size() - 1; i > 0; --i) {
        steps[i - 1] = steps[i] * r.axes[i];
    }
    for (size_t i = 0; i < r.axes.size(); ++i) {
        out.axes[i] = r.axes[static_cast<size_t>(perm[i + 1] - 1)];
    }
    for (size_t to = 0; to < r.channels.size(); ++to) {
        auto rest = static_cast<int64_t>(to);
        int64_t at = 0;
        for (size_t i = r.axes.size(); i-- > 0;) {
            at += rest % out.axes[i] * steps[static_cast<size_t>(perm[i + 1] - 1)];
            rest /= out.axes[i];
        }
        out.channels[to] = r.channels[static_cast<size_t>(at)];
        out.is_shuffled = out.is_shuffled || at != static_cast<int64_t>(to);
    }
    return out;
}

int64_t channels_of(const Graph& g, Value v) {
    return g.type(v).dims[1].value();
}

int64_t channels_of(const Graph& g, std::span<const Value> values) {
    int64_t n = 0;
    for (Value v : values) {
        n += channels_of(g, v);
    }
    return n;
}

std::vector<int64_t> places_in(const Graph& g, std::span<const Value> values,
                               const ChannelRoute& r) {
    std::map<Value, int64_t> starts;
    int64_t start = 0;
    for (Value v : values) {
        starts.emplace(v, start);
        start += channels_of(g, v);
    }
    std::vector<int64_t> out;
    for (const Channel& c : r.channels) {
        auto it = starts.find(c.of);
        CHECK(it != starts.end(), "channel of a value outside");
        out.push_back(it->second + c.index);
    }
    return out;
}

} // namespace ingot::plan
