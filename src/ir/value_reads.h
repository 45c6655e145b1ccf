// SPDX-License-Identifier: Apache-2.0
// Which constants shape a graph while it is built: whoever looks at their elements (a list of axes,
// a scale that gives a size) may do something else when they change.
#pragma once

#include "ir/graph.h"

#include <set>
#include <string>

namespace ingot {

/// While it lives, notes the named constants that this thread looks at through Graph::constant, and
/// those from which contents were computed that it looks at through Graph::host (whoever does so
/// calls note(); inference, which only hands contents on, does not). The innermost of a thread
/// notes.
class ValueReads {
public:
    ValueReads();
    ~ValueReads();
    ValueReads(const ValueReads&) = delete;
    ValueReads& operator=(const ValueReads&) = delete;
    const std::set<std::string, std::less<>>& names() const { return names_; }

    /// Someone looks at the contents of v.
    static void note(const Graph& g, Value v);

private:
    ValueReads* outer_;
    std::set<std::string, std::less<>> names_;
};

} // namespace ingot
