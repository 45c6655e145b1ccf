// SPDX-License-Identifier: Apache-2.0
// Records which constants influence the graph while it is built: code that reads their elements (a
// list of axes, a scale that gives a size) may build another graph when they change.
#pragma once

#include "ir/graph.h"

#include <set>
#include <string>

namespace ingot {

/// While it lives, records the named constants whose elements this thread reads through
/// Graph::constant, and the constants behind contents that it reads through Graph::host. Readers of
/// host contents call note(); inference, which only forwards them, does not. Only the innermost
/// recorder of a thread records.
class ValueReads {
public:
    ValueReads();
    ~ValueReads();
    ValueReads(const ValueReads&) = delete;
    ValueReads& operator=(const ValueReads&) = delete;
    const std::set<std::string, std::less<>>& names() const { return names_; }

    /// Records a read of the contents of v.
    static void note(const Graph& g, Value v);

private:
    ValueReads* outer_;
    std::set<std::string, std::less<>> names_;
};

} // namespace ingot
