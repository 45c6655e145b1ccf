// SPDX-License-Identifier: Apache-2.0
// Visits nodes in execution order, taking all available nodes of one kind, then of the other. Nodes
// that are adjacent in such an order form a convex group, and taking all of them makes the fewest
// switches for the first kind; both first kinds are tried.
#include "plugins/onnxruntime/partition.h"

#include <numeric>
#include <unordered_map>

namespace ingot::ort {

namespace {

using Groups = std::vector<std::vector<size_t>>;

Groups groups_from(std::span<const PartitionNode> nodes, std::vector<size_t> waits, bool kind) {
    Groups groups;
    std::vector<size_t> ready[2];
    for (size_t i = nodes.size(); i-- > 0;) {
        if (waits[i] == 0) {
            ready[nodes[i].supported ? 1 : 0].push_back(i);
        }
    }
    for (; !ready[0].empty() || !ready[1].empty(); kind = !kind) {
        std::vector<size_t>& now = ready[kind ? 1 : 0];
        std::vector<size_t> taken;
        while (!now.empty()) {
            size_t node = now.back();
            now.pop_back();
            taken.push_back(node);
            for (size_t reader : nodes[node].readers) {
                if (--waits[reader] == 0) {
                    ready[nodes[reader].supported ? 1 : 0].push_back(reader);
                }
            }
        }
        if (kind && !taken.empty()) {
            groups.push_back(std::move(taken));
        }
    }
    return groups;
}

size_t root(std::vector<size_t>& parents, size_t i) {
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

} // namespace

Groups partition(std::span<const PartitionNode> nodes) {
    std::vector<size_t> waits(nodes.size(), 0);
    for (const PartitionNode& n : nodes) {
        for (size_t reader : n.readers) {
            ++waits[reader];
        }
    }
    Groups others_first = groups_from(nodes, waits, false);
    Groups ours_first = groups_from(nodes, std::move(waits), true);
    return others_first.size() <= ours_first.size() ? others_first : ours_first;
}

Groups components(std::span<const PartitionNode> nodes, std::span<const size_t> group) {
    std::unordered_map<size_t, size_t> places;
    for (size_t i = 0; i < group.size(); ++i) {
        places.emplace(group[i], i);
    }
    std::vector<size_t> parents(group.size());
    std::iota(parents.begin(), parents.end(), size_t{0});
    for (size_t i = 0; i < group.size(); ++i) {
        for (size_t reader : nodes[group[i]].readers) {
            if (auto it = places.find(reader); it != places.end()) {
                parents[root(parents, it->second)] = root(parents, i);
            }
        }
    }
    Groups out;
    std::unordered_map<size_t, size_t> numbers;
    for (size_t i = 0; i < group.size(); ++i) {
        auto [it, is_new] = numbers.emplace(root(parents, i), out.size());
        if (is_new) {
            out.emplace_back();
        }
        out[it->second].push_back(group[i]);
    }
    return out;
}

} // namespace ingot::ort
