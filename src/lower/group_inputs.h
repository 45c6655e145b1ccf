// SPDX-License-Identifier: Apache-2.0
// The operands of a group that a pass builds.
#pragma once

#include "ir/graph.h"

#include <algorithm>

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

} // namespace ingot::plan
