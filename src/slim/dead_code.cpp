// SPDX-License-Identifier: Apache-2.0
// Rules that remove unused nodes and initializers.
#include "slim/rules.h"

#include <algorithm>

namespace ingot::slim {

namespace {

bool dead_nodes(Context& c, size_t) {
    bool changed = false;
    for (size_t i = c.edit.size(); i-- > 0;) {
        if (!c.edit.alive(i)) {
            continue;
        }
        const std::vector<std::string>& outputs = c.edit.node(i).outputs;
        const bool dead = std::none_of(outputs.begin(), outputs.end(),
                                       [&](const std::string& o) { return c.edit.is_used(o); });
        if (dead) {
            c.edit.erase(i);
            changed = true;
        }
    }
    return changed;
}

bool unused_initializers(Context& c, size_t) {
    std::vector<std::string> unused;
    for (const onnx::Tensor& t : c.edit.constants()) {
        if (!t.name.empty() && !c.edit.is_used(t.name) && !c.edit.is_input(t.name)) {
            unused.push_back(t.name);
        }
    }
    for (const std::string& name : unused) {
        c.edit.drop_constant(name);
    }
    return !unused.empty();
}

const Rule rules[] = {
    {"dead-node", "dead_node_elimination", "nodes with unused results", {}, dead_nodes},
    {"unused-initializer", "dead_node_elimination", "unused initializers", {}, unused_initializers},
};

} // namespace

const RuleTable dead_code_rules = rules;

} // namespace ingot::slim
