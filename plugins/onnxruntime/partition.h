// SPDX-License-Identifier: Apache-2.0
// Splits a graph into groups for Ingot and nodes for others. Nodes are plain numbers here.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ingot::ort {

struct PartitionNode {
    bool supported = false;
    std::vector<size_t> readers; // nodes that read its results, possibly repeated
};
/// The fewest groups of supported nodes such that each node is in one group and no path leaves a
/// group and returns to it. Nodes of a group are in execution order. Time is linear in nodes and
/// readers. The graph must be acyclic.
std::vector<std::vector<size_t>> partition(std::span<const PartitionNode> nodes);

/// The connected parts of a group, in its order.
std::vector<std::vector<size_t>> components(std::span<const PartitionNode> nodes,
                                            std::span<const size_t> group);

} // namespace ingot::ort
