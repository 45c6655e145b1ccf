// SPDX-License-Identifier: Apache-2.0
// Draws a graph: Graphviz text, or an SVG picture with our own layered layout.
#pragma once

#include "ir/graph.h"

#include <string>

namespace ingot {

/// Constants are omitted; each node is a box with its op, name and result types.
std::string draw_dot(const Graph& g);
/// A self-contained SVG: rows by depth from the inputs, ordered to keep edges short.
std::string draw_svg(const Graph& g);

} // namespace ingot
