// SPDX-License-Identifier: Apache-2.0
// The families of mapped_rows.h: a pointwise convolution behind a depthwise one, and behind a map
// of channels, in one launch.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

std::optional<std::string> refuse_depthwise_product(const Group& group);
void depthwise_product_layout(LayoutArgs& args);
std::vector<Tactic> depthwise_product_tactics(const Problem& p);
Emitted emit_depthwise_product(const Problem& p, const Tactic& t);

std::optional<std::string> refuse_mapped_conv(const Group& group);
void mapped_conv_layout(LayoutArgs& args);
std::vector<Tactic> mapped_conv_tactics(const Problem& p);
Emitted emit_mapped_conv(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
