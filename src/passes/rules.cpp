// SPDX-License-Identifier: Apache-2.0
#include "passes/rules.h"

#include "base/error.h"
#include "base/log.h"
#include "passes/expr_rules.h"

#include <algorithm>
#include <unordered_map>

namespace ingot::passes {

namespace {

// Two rules that undo each other would never end.
constexpr int max_rounds = 64;

// Counts the uses of old values for their replacements in the new graph.
void count_uses(const Rewriter& r, const Node& old, const std::vector<uint32_t>& old_uses,
                std::vector<uint32_t>& uses) {
    for (Value v : old.outputs) {
        if (!r.is_mapped(v)) {
            continue;
        }
        Value now = r.mapped(v);
        if (now.id >= uses.size()) {
            uses.resize(now.id + size_t{1}, 0);
        }
        uses[now.id] += old_uses[v.id];
    }
}

/// The rules of each op, in their order.
class RulesByOp {
public:
    explicit RulesByOp(std::span<const Rules> lists) : lists_(lists) {}

    std::span<const SiteRule> of(const OpDef& def) {
        if (&def != last_) { // neighbours often have one op
            last_ = &def;
            of_last_ = found(def);
        }
        return of_last_;
    }

private:
    std::span<const SiteRule> found(const OpDef& def) {
        auto [at, fresh] = rules_.try_emplace(&def);
        for (size_t i = 0; fresh && i < lists_.size(); ++i) {
            for (const RuleRow& row : lists_[i]) {
                if (row.def == nullptr || row.def == &def) {
                    at->second.push_back(row.rule);
                }
            }
        }
        return at->second;
    }

    std::span<const Rules> lists_;
    const OpDef* last_ = nullptr;
    std::span<const SiteRule> of_last_;
    std::unordered_map<const OpDef*, std::vector<SiteRule>> rules_;
};

/// Writes the results of the first rule that applies, else a copy.
void write(Rewriter& r, const Node& n, std::span<const SiteRule> rules,
           const std::vector<uint32_t>& uses, SimplifiedBodies& bodies, bool& changed) {
    if (rules.empty()) {
        if (!r.keep(n)) {
            r.replace(n, r.copy(n));
        }
        return;
    }
    Site s(r, n, uses, bodies);
    r.out().set_origin(n.name);
    for (SiteRule rule : rules) {
        if (auto by = rule(s)) {
            changed = true;
            r.replace(n, *by);
            return;
        }
    }
    r.replace(n, s.copied());
}

} // namespace

Site::Site(Rewriter& r, const Node& old, const std::vector<uint32_t>& uses,
           SimplifiedBodies& bodies)
    : r_(r), old_(old), n_(&old), uses_(uses), bodies_(bodies) {
    if (!r.is_same()) {
        current_ = r.current(old);
        n_ = &*current_;
    }
}

const Type& Site::result(size_t i) const {
    if (!r_.has_replaced_symbols()) {
        return r_.from().type(old_.outputs[i]);
    }
    // A rule may replace further symbols between two calls.
    results_.resize(old_.outputs.size());
    const Type& t = r_.from().type(old_.outputs[i]);
    results_[i] = {t.dtype, r_.mapped(t.dims)};
    return results_[i];
}

const Values& Site::copied() {
    if (copied_ == nullptr) {
        copied_ = &old_.outputs;
        if (!r_.share(old_)) {
            made_ = r_.copy(old_, n_->inputs);
            copied_ = &made_;
        }
    }
    return *copied_;
}

Graph apply_rules(const Graph& g, std::span<const Rules> rules) {
    Graph now = g;
    RulesByOp by_op(rules);
    SimplifiedBodies bodies;
    for (int round = 0; round < max_rounds; ++round) {
        bool any = std::any_of(now.nodes().begin(), now.nodes().end(),
                               [&](const Node& n) { return !by_op.of(*n.def).empty(); });
        if (!any) {
            return dead_code(now);
        }
        bool changed = false;
        std::vector<uint32_t> old_uses = use_counts(now);
        std::vector<uint32_t> uses;
        uses.reserve(old_uses.size());
        for (Value v : now.inputs()) {
            uses.push_back(old_uses[v.id]);
        }
        Rewriter r(now);
        for (const Node& n : now.nodes()) {
            with_place([&] { return str("node '", n.name, "' (", n.def->name, ")"); },
                       [&] { write(r, n, by_op.of(*n.def), uses, bodies, changed); });
            count_uses(r, n, old_uses, uses);
        }
        now = dead_code(r.finish());
        if (!changed) {
            return now;
        }
    }
    log(LogLevel::Warning, "simplification of graph '", g.name(), "' stopped after ", max_rounds,
        " rounds");
    return now;
}

Graph apply_rules(const Graph& g, Rules rules, std::initializer_list<const OpDef*> needed) {
    auto is_needed = [&needed](const Node& n) {
        return std::find(needed.begin(), needed.end(), n.def) != needed.end();
    };
    if (needed.size() > 0 && std::none_of(g.nodes().begin(), g.nodes().end(), is_needed)) {
        return dead_code(g);
    }
    return apply_rules(g, std::span<const Rules>(&rules, 1));
}

} // namespace ingot::passes
