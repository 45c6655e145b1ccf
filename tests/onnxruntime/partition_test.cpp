// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::ort {
namespace {

using Nodes = std::vector<PartitionNode>;

Nodes random_nodes(std::mt19937& random, size_t count, double supported, double edges) {
    Nodes nodes(count);
    std::uniform_real_distribution<double> chance;
    for (size_t i = 0; i < count; ++i) {
        nodes[i].supported = chance(random) < supported;
        for (size_t k = i + 1; k < count; ++k) {
            if (chance(random) < edges) {
                nodes[i].readers.push_back(k);
            }
        }
    }
    return nodes;
}

/// Whether a path leaves the group and comes back.
bool is_convex(const Nodes& nodes, const std::vector<size_t>& group) {
    std::vector<bool> inside(nodes.size());
    for (size_t i : group) {
        inside[i] = true;
    }
    std::vector<bool> behind(nodes.size()); // outside, and reached from the group
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (size_t reader : nodes[i].readers) {
            if (behind[i] && inside[reader]) {
                return false;
            }
            behind[reader] = behind[reader] || ((inside[i] || behind[i]) && !inside[reader]);
        }
    }
    return true;
}

TEST(Partition, GroupsAreConvexAndHoldEverySupportedNodeOnce) {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
        double supported = 0.1 * static_cast<double>(round % 11);
        Nodes nodes = random_nodes(random, 1 + static_cast<size_t>(round) % 40, supported, 0.1);
        std::vector<int> times(nodes.size());
        for (const auto& group : partition(nodes)) {
            EXPECT_TRUE(is_convex(nodes, group)) << "round " << round;
            EXPECT_FALSE(group.empty());
            for (size_t i : group) {
                ++times[i];
            }
        }
        for (size_t i = 0; i < nodes.size(); ++i) {
            EXPECT_EQ(times[i], nodes[i].supported ? 1 : 0) << "round " << round << " node " << i;
        }
    }
}

TEST(Partition, GraphThatIsSupportedIsOneGroup) {
    std::mt19937 random(8);
    Nodes nodes = random_nodes(random, 100, 1.1, 0.05);
    ASSERT_EQ(partition(nodes).size(), 1U);
    EXPECT_EQ(partition(nodes)[0].size(), 100U);
    EXPECT_TRUE(partition(Nodes{}).empty());
}

TEST(Partition, NodesOnBothSidesOfAnUnsupportedOneAreTwoGroups) {
    // 0 -> 1 -> 2 with 1 unsupported; 3 reads 0 and may be in either.
    Nodes nodes = {{true, {1, 3}}, {false, {2}}, {true, {}}, {true, {}}};
    EXPECT_EQ(partition(nodes).size(), 2U);
}

TEST(Partition, WhatMayWaitJoinsTheLaterGroup) {
    // 0 and 2 could be one group; beginning with the unsupported node 1 makes it one.
    Nodes nodes = {{true, {2}}, {false, {2}}, {true, {}}};
    auto groups = partition(nodes);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].size(), 2U);
}

TEST(Partition, ComponentsOfAGroupExchangeNothing) {
    Nodes nodes = {{true, {2}}, {true, {3}}, {true, {}}, {true, {}}, {true, {}}};
    std::vector<size_t> group = {0, 1, 2, 3, 4};
    std::vector<std::vector<size_t>> expected = {{0, 2}, {1, 3}, {4}};
    EXPECT_EQ(components(nodes, group), expected);
}

TEST(Partition, LargeGraphs) {
    constexpr size_t count = 300'000; // quadratic time would take minutes
    Nodes nodes(count);
    for (size_t i = 0; i + 1 < count; ++i) {
        nodes[i].supported = i % 3 != 0;
        nodes[i].readers = {i + 1};
    }
    EXPECT_EQ(partition(nodes).size(), count / 3);
}

} // namespace
} // namespace ingot::ort
