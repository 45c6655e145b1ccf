// SPDX-License-Identifier: Apache-2.0
// How nodes treat the channels of [N, channels, ...], and the values that are given further
// channels, so that convolutions read whole vectors.
#pragma once

#include "lower/users.h"

#include <optional>
#include <vector>

namespace ingot::plan {

/// The constant weights of a convolution of floats of 16 or 32 bits; else null.
const Tensor* weights_of(const Graph& g, const Node& n);
/// A convolution with such weights and one group.
bool is_dense(const Graph& g, const Node& n);
/// A convolution with such weights and one channel a group, of which it makes one.
bool is_depthwise(const Graph& g, const Node& n);

/// The one operand of a map that is no constant, where the map takes further channels of zeros as
/// it does others.
std::optional<size_t> mapped_operand(const Graph& g, const Node& n);

/// The operands whose channels n's result has, each treated alone, in an op that works on any
/// number of them; empty where there are none. Maps, pooling, resizing, moves along other axes, and
/// squeeze-and-excite, whose constant weights have a channel each.
std::vector<size_t> channelwise_operands(const Graph& g, const Node& n);

/// `channels`, or more that fill whole vectors of elements of `t`.
int64_t whole_vectors(int64_t channels, DType t);

/// The values to make with whole_vectors() of channels, of which those behind the value's own are
/// zeros or what the ops make of zeros: results of convolutions whose channels fill no vectors, and
/// what channelwise ops make of them, where a convolution reads it in the end. All readers can go
/// on with it, but for reductions, which read a part. `takes_routes`, by value: as in Router.
std::vector<char> padded_values(const Graph& g, const Users& users,
                                const std::vector<char>& takes_routes);

} // namespace ingot::plan
