// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, in one launch: a family of its own.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

std::optional<std::string> refuse_depthwise_product(const Group& group);
void depthwise_product_layout(LayoutArgs& args);
std::vector<Tactic> depthwise_product_tactics(const Problem& p);
Emitted emit_depthwise_product(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
