// SPDX-License-Identifier: Apache-2.0
// Pointwise steps, for the map kernel and for the epilogues of others.
#pragma once

#include "backends/cpu/expr_program.h"
#include "backends/cpu/kernel.h"

namespace ingot::cpu {

/// A step that computes out = body(in...), broadcasting; `out` may lie where an input of its shape
/// lies. Errors: InvalidArgument for shapes that do not broadcast.
std::unique_ptr<Step> make_map(const Expr& body, std::span<const Operand> in, const Operand& out);
/// Why make_map cannot run a map node.
std::optional<std::string> refuse_map(const Graph& g, const Node& n);
/// The order of the first input of the result's shape, else `order` stays.
void follow_inputs(std::span<const View> in, const Shape& out, Order& order);

} // namespace ingot::cpu
