// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

#include <vector>

namespace ingot::plan {

/// By value: the nodes that read it, in their order; one that reads it twice comes twice. Outputs
/// of the graph do not count.
using Users = std::vector<std::vector<const Node*>>;
Users users_of(const Graph& g);

} // namespace ingot::plan
