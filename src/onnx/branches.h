// SPDX-License-Identifier: Apache-2.0
// Branches of If whose results differ in rank: nodes that read them can move into the branches,
// until what leaves the branches agrees.
#pragma once

#include "base/error.h"
#include "onnx/model.h"

#include <set>
#include <string>
#include <vector>

namespace ingot::onnx {

/// Thrown for an If whose branches disagree on a rank.
struct RanksDiffer : Error {
    using Error::Error;
};

/// An If node that waits for its readers.
class OpenIf {
public:
    /// Errors: none; without both branches it takes no node.
    OpenIf(const Node& node, size_t index, RanksDiffer reason);
    bool reads(const Node& node) const;
    /// Appends a node that reads() to both branches. False where that would change what a name
    /// means, or make the branches too long.
    bool take(const Node& node);
    /// The If with the nodes taken so far, whose results are those of its names that `wanted` has.
    const Node& node_for(const std::set<std::string, std::less<>>& wanted);
    const std::set<std::string, std::less<>>& names() const { return names_; }
    size_t index() const { return index_; }
    const RanksDiffer& reason() const { return reason_; }
    const Node& original() const { return original_; }

private:
    Node original_;
    Node merged_;
    size_t index_;
    RanksDiffer reason_;
    std::vector<std::shared_ptr<Graph>> branches_; // of merged_
    std::set<std::string, std::less<>> names_;     // results of the If and of the nodes taken
    std::set<std::string, std::less<>> inner_;     // names defined in a branch
    size_t taken_ = 0;
};

} // namespace ingot::onnx
