// SPDX-License-Identifier: Apache-2.0
// Values of an outer graph in a body, which is closed: all that it reads are its inputs.
#pragma once

#include "ir/graph.h"

#include <string>

namespace ingot::ops {

/// The value in a body that replaces a value of the outer graph.
struct Captured {
    Value inside;
    bool is_input; // else it is computed anew: a constant or a known size
};
/// Adds it to the body; an input gets this name.
Captured capture(Graph& body, const Graph& outer, Value v, const std::string& name);

} // namespace ingot::ops
