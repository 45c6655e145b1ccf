// SPDX-License-Identifier: Apache-2.0
// Draws a graph for people: Graphviz text, or an SVG picture with a layered layout of our own.
#pragma once

#include "ir/graph.h"

#include <string>

namespace ingot {

/// Constants are left out; each node is a box with its op, name and result types.
std::string draw_dot(const Graph& g);
/// A self-contained SVG: rows by depth from the inputs, ordered to keep edges short.
std::string draw_svg(const Graph& g);

} // namespace ingot
