// SPDX-License-Identifier: Apache-2.0
// Pointwise steps, for the map kernel and for the epilogues of others.
#pragma once

#include "backends/cpu/expr_program.h"
#include "backends/cpu/kernel.h"

namespace ingot::cpu {

/// A step that computes out = body(in...) with broadcasting; `out` may alias an input of the same
/// shape. Errors: InvalidArgument for shapes that do not broadcast.
std::unique_ptr<Step> make_map(const Expr& body, std::span<const Operand> in, const Operand& out);
/// Why make_map cannot run a map node.
std::optional<std::string> refuse_map(const Graph& g, const Node& n);
/// Sets `order` to that of the first input with the result's shape, if any.
void follow_inputs(std::span<const View> in, const Shape& out, Order& order);

} // namespace ingot::cpu
