// SPDX-License-Identifier: Apache-2.0
// Rules: local rewrites of one node, applied over a whole graph until none applies.
#pragma once

#include "passes/pass.h"

#include <initializer_list>
#include <span>

namespace ingot::passes {

class SimplifiedBodies; // expr_rules.h

/// A node as a rule sees it: attributes and operands of the graph being written.
class Site {
public:
    Site(Rewriter& r, const Node& old, const std::vector<uint32_t>& uses, SimplifiedBodies& bodies);
    Site(const Site&) = delete;
    Site& operator=(const Site&) = delete;

    Rewriter& rewriter() { return r_; }
    Graph& g() { return r_.out(); }
    const Graph& g_const() const { return r_.out(); }
    const Node& node() const { return *n_; }
    template <class A>
    const A& as() const {
        return n_->as<A>();
    }
    size_t input_count() const { return n_->inputs.size(); }
    Value in(size_t i = 0) const { return n_->inputs[i]; }
    std::span<const Value> inputs() const { return n_->inputs; }
    const Type& in_type(size_t i = 0) const { return r_.out().type(n_->inputs[i]); }
    /// The type required of a replacement for result i.
    const Type& result(size_t i = 0) const;
    size_t results() const { return old_.outputs.size(); }
    /// Contents of the (first) result known in the graph being read; its symbols are not replaced.
    HostRef old_host() const { return r_.from().host(old_.outputs[0]); }
    /// The node itself, copied to the new graph: for rules that match it as part of a pattern.
    const Values& copied();
    /// The producer of operand i if it is that op, else null.
    const Node* producer(size_t i, const OpDef& def) const { return produced(in(i), def); }
    const Node* produced(Value v, const OpDef& def) const {
        const Node* p = r_.out().producer(v);
        return p != nullptr && p->is(def) ? p : nullptr;
    }
    SimplifiedBodies& bodies() { return bodies_; }
    /// The number of uses in the old graph; 0 for values that rules made.
    uint32_t uses(Value v) const { return v.id < uses_.size() ? uses_[v.id] : 0; }

private:
    Rewriter& r_;
    const Node& old_;
    std::optional<Node> current_; // where it differs from the old one
    const Node* n_;
    Values made_;
    const Values* copied_ = nullptr;    // the results of the old node, or made_
    mutable std::vector<Type> results_; // where symbols were replaced
    const std::vector<uint32_t>& uses_;
    SimplifiedBodies& bodies_;
};

using SiteRule = std::optional<Values> (*)(Site& s);
struct RuleRow {
    const OpDef* def;
    SiteRule rule;
};
using Rules = std::span<const RuleRow>;

/// Applies to each node the first matching rule of its op, then removes dead code; repeats until no
/// rule applies.
Graph apply_rules(const Graph& g, std::span<const Rules> rules);
/// In a graph without any of the ops of `needed`, where that is given, no rule can apply.
Graph apply_rules(const Graph& g, Rules rules, std::initializer_list<const OpDef*> needed = {});

} // namespace ingot::passes
