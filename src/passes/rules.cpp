// SPDX-License-Identifier: Apache-2.0
#include "passes/rules.h"

#include "base/error.h"
#include "base/log.h"

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
        uses.resize(std::max<size_t>(uses.size(), now.id + size_t{1}), 0);
        uses[now.id] += old_uses[v.id];
    }
}

std::optional<Values> first_that_applies(Site& s, std::span<const Rules> rules) {
    for (Rules list : rules) {
        for (const RuleRow& row : list) {
            if (row.def == nullptr || s.node().is(*row.def)) {
                if (auto by = row.rule(s)) {
                    return by;
                }
            }
        }
    }
    return std::nullopt;
}

} // namespace

Site::Site(Rewriter& r, const Node& old, const std::vector<uint32_t>& uses)
    : r_(r), old_(old), n_(r.current(old)), uses_(uses) {}

Type Site::result(size_t i) const {
    const Type& t = r_.from().type(old_.outputs[i]);
    return {t.dtype, r_.mapped(t.dims)};
}

const Values& Site::copied() {
    if (copied_.empty()) {
        copied_ = r_.copy(old_);
    }
    return copied_;
}

Graph apply_rules(const Graph& g, std::span<const Rules> rules) {
    Graph now = g;
    for (int round = 0; round < max_rounds; ++round) {
        bool changed = false;
        std::vector<uint32_t> old_uses = use_counts(now);
        std::vector<uint32_t> uses;
        for (Value v : now.inputs()) {
            uses.push_back(old_uses[v.id]);
        }
        Rewriter r(now);
        for (const Node& n : now.nodes()) {
            with_place([&] { return str("node '", n.name, "' (", n.def->name, ")"); },
                       [&] {
                           Site s(r, n, uses);
                           r.out().set_origin(n.name);
                           auto by = first_that_applies(s, rules);
                           changed = changed || by.has_value();
                           r.replace(n, by ? *by : s.copied());
                       });
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

} // namespace ingot::passes
