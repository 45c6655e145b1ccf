// SPDX-License-Identifier: Apache-2.0
// Where the channels of a value lie: a value [N, channels, ...] that slices, concats and shuffles
// of channels made has elements of others, which may be read where they are.
#pragma once

#include "ir/graph.h"

#include <optional>

namespace ingot::plan {

/// A channel of a value.
struct Channel {
    Value of;
    int64_t index = 0;
};

struct ChannelRoute {
    std::vector<Channel> channels; // row major over `axes`
    /// The values that its channels and those of what it was made from are in, in the order in
    /// which they were written. Those of a network's stage are a beginning of those of the next
    /// value.
    Values family;
    std::vector<int64_t> axes; // the axes of the value behind the first that its channels fill
    bool is_shuffled = false;
    /// A convolution's results were given further channels, or left where others lie between them.
    bool is_padded = false;

    bool is_flat() const { return axes.size() == 1; }
    int64_t count() const { return static_cast<int64_t>(channels.size()); }
    /// The part of the family from the first value with one of the channels to the last one.
    std::span<const Value> run() const;
};

/// The value's own channels; nullopt where it has no constant number of them.
std::optional<ChannelRoute> own_channels(const Graph& g, Value v);

ChannelRoute concat_of(std::span<const ChannelRoute> parts);
/// The routes through a slice of channels alone, a reshape that splits or merges the channels'
/// axis, and a permutation of the axes which that makes; nullopt for others.
std::optional<ChannelRoute> through_slice(const Graph& g, const Node& n, const ChannelRoute& r);
std::optional<ChannelRoute> through_reshape(const Graph& g, const Node& n, const ChannelRoute& r);
std::optional<ChannelRoute> through_permute(const Node& n, const ChannelRoute& r);

/// A value's number of channels, which must be constant.
int64_t channels_of(const Graph& g, Value v);
int64_t channels_of(const Graph& g, std::span<const Value> values);
/// For each of the route's channels, its place in the concat of `values`, which have them all.
std::vector<int64_t> places_in(const Graph& g, std::span<const Value> values,
                               const ChannelRoute& r);

} // namespace ingot::plan
