// SPDX-License-Identifier: Apache-2.0
// quantized_dot, with the map that follows it: products with a weight that is read as it is
// stored, in 4 or 8 bits, and dequantised in registers.
#pragma once

#include "kernels/gemv/gemv.h"

namespace ingot::kernels {

std::optional<std::string> refuse_quantized_dot(const Group& group);
void layout_quantized_dot(LayoutArgs& args);
std::vector<Tactic> quantized_dot_tactics(const Problem& p);
Emitted emit_quantized_dot(const Problem& p, const Tactic& t);

/// Of rows that are normalised before they are multiplied, in every block.
void add_normed_quantized_dot_tactics(std::vector<Tactic>& out, const Problem& p,
                                      const RowNorm& norm);
bool normalises_inside(const Tactic& t);
Emitted emit_normed_quantized_dot(const Problem& p, const RowNorm& norm, const Tactic& t);

} // namespace ingot::kernels
