// SPDX-License-Identifier: Apache-2.0
// Divides a graph into what Ingot runs and what is left to others. Knows nodes by number only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ingot::ort {

struct PartitionNode {
    bool supported = false;
    std::vector<size_t> readers; // nodes that read its results; the same one may occur again
};
/// The fewest groups of supported nodes such that each node is in one and nothing that leaves a
/// group comes back to it. Nodes of a group are in an order in which they can run. Time is linear
/// in nodes and readers. The nodes form no cycle.
std::vector<std::vector<size_t>> partition(std::span<const PartitionNode> nodes);

/// Parts of a group that exchange nothing with each other, in its order.
std::vector<std::vector<size_t>> components(std::span<const PartitionNode> nodes,
                                            std::span<const size_t> group);

} // namespace ingot::ort
