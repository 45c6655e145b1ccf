// SPDX-License-Identifier: Apache-2.0
// Passes that make one kernel of a node and the one that alone reads its result.
#pragma once

#include "ir/rewrite.h"
#include "passes/pass.h"
#include "plan/kernel.h"

namespace ingot::plan {

/// A convolution, with the map behind it if there is one, as the group of a kernel.
std::optional<Group> convolution_group(const Graph& g, const Node* n);

/// Joins every convolution with the node that makes its first operand and that nothing else reads,
/// where `producer` takes that node as a group and the kernel runs both.
struct JoinedPair {
    const KernelSet& kernels;
    const char* kernel;
    std::optional<Group> (*producer)(const Graph& g, const Node* n);
};
Pass join_pass(std::string_view name, std::string_view summary, const JoinedPair& pair);

} // namespace ingot::plan
