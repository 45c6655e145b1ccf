// SPDX-License-Identifier: Apache-2.0
// The maps behind a node that treat each of its channels with constants: biases, activations. They
// go along where a pass gives the node other channels.
#pragma once

#include "ir/rewrite.h"

#include <functional>

namespace ingot::plan {

/// A node with results [N, channels, ...] and the maps behind it, each the only reader of what
/// comes before. Their other operands are constants, of one element or one a channel.
struct ChannelChain {
    const Node* first = nullptr;
    std::vector<const Node*> maps;

    const Node& last() const { return maps.empty() ? *first : *maps.back(); }
    Value result() const { return last().outputs[0]; }
};
/// Rewrites nodes together with the maps behind them: `made` gives what stands for the result of
/// the last one, for each node that is `wanted`. Maps at the end whose results are not of such
/// types are left out.
Graph rewrite_chains(
    const Graph& g, const std::function<bool(const Node&)>& wanted,
    const std::function<Value(Rewriter&, const ChannelChain&)>& made,
    const std::function<bool(DType)>& ends = [](DType) { return true; });

/// The chain's maps of `y`, which stands for the first node's result; `change` makes of a constant
/// with an element a channel what goes with the channels of y. Its axis of channels is given.
Value with_maps(Graph& out, const Graph& old, const ChannelChain& chain, Value y,
                const std::function<Tensor(const Tensor&, size_t axis)>& change);
/// A constant with an element a channel whose axis of channels is repeated `count` times.
Tensor repeated(const Tensor& t, size_t axis, int64_t count);

} // namespace ingot::plan
