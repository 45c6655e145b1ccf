// SPDX-License-Identifier: Apache-2.0
// The nodes that fold_constants evaluates, chosen before any runs.
#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

#include <vector>

namespace ingot::passes {

/// Ops that need their operands in memory; a map reads repeated elements on the fly.
bool moves_elements(const Node& n);
/// Whether n's results depend on its operands alone, may be constants, and have known sizes.
bool may_fold(const Graph& g, const Node& n);

/// Nodes whose operands are constants or results of such nodes, within the limits of the options.
/// Memory counts where results stay: one that only such nodes read is dropped with the fold,
/// however much it outgrows its operands. A result that would outgrow too much is not made, and
/// neither is one that needs it.
class FoldPlan {
public:
    FoldPlan(const Graph& g, const PassOptions& options);
    /// n: a node of g.
    bool has(const Node& n) const { return chosen_[n.outputs[0].id]; }
    /// Whether a node that is not chosen reads v, or the graph returns it.
    bool stays(Value v) const { return stays_[v.id]; }

private:
    bool chooses();
    bool keeps_growth();
    bool known(Value v) const;
    bool has_operands(const Node& n) const;
    double held(Value v) const { return held_[v.id]; }

    const Graph& g_;
    const PassOptions& options_;
    std::vector<bool> chosen_, refused_; // by a node's first result
    std::vector<bool> stays_;            // by value
    std::vector<double> held_;           // bytes of the constants that a value needs, by value
};

} // namespace ingot::passes
