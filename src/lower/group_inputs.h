// SPDX-License-Identifier: Apache-2.0
// The operands and the nodes of a group that a pass builds.
#pragma once

#include "ir/graph.h"

#include <algorithm>
#include <map>
#include <span>

namespace ingot::plan {

/// Gives the body of a group its inputs: one for each value of the graph around it, in the order
/// asked. The body gets all its inputs here. Keeps references to both graphs.
class GroupInputs {
public:
    GroupInputs(Graph& body, const Graph& around) : body_(body), around_(around) {}

    /// The body's input for value v of the graph around it.
    Value of(Value v) {
        auto known = std::find(values_.begin(), values_.end(), v);
        if (known != values_.end()) {
            return body_.inputs()[static_cast<size_t>(known - values_.begin())];
        }
        values_.push_back(v);
        return body_.add_input("", around_.type(v));
    }
    /// The values of the graph around, in the order of the body's inputs.
    const Values& values() const { return values_; }

private:
    Graph& body_;
    const Graph& around_;
    Values values_;
};

/// Appends copies of nodes to the body. `inside` maps the ids of the values that they read to the
/// body's values, and gets those of their results.
inline void append_nodes(Graph& body, std::span<const Node> nodes,
                         std::map<uint32_t, Value>& inside) {
    for (const Node& n : nodes) {
        Values operands;
        for (Value v : n.inputs) {
            operands.push_back(inside.at(v.id));
        }
        body.set_origin(n.name);
        Values results = body.add(*n.def, n.attrs, operands);
        for (size_t i = 0; i < results.size(); ++i) {
            inside[n.outputs[i].id] = results[i];
        }
    }
}

} // namespace ingot::plan
