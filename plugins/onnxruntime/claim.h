// SPDX-License-Identifier: Apache-2.0
// Claim: the nodes of a graph that the provider takes, in groups, and the reasons for the others.
#pragma once

#include "plugins/onnxruntime/engine.h"

namespace ingot::ort {

struct Claim {
    std::vector<std::vector<const OrtNode*>> groups; // each convex, in an order in which it can run
    /// The nodes left to others: reason by operator.
    struct Left {
        size_t count = 0;
        std::string first; // node
        std::string reason;
    };
    std::map<std::string, Left> left;
    size_t nodes = 0;
    size_t claimed = 0;
};
/// Errors: InvalidModel when the graph as a whole is unusable.
Claim claim_graph(const Host& host, const OrtGraph* graph, const Options& options,
                  const std::shared_ptr<ApiLogger>& logger);
/// A table of the nodes left to others: operator, count, first node, reason.
std::string left_table(const Claim& claim);

} // namespace ingot::ort
