// SPDX-License-Identifier: Apache-2.0
// Groups of a layer_norm over the last axis, which only the dot or quantized_dot behind it reads,
// and what follows that: products of few rows normalise them in every block, other ones in a launch
// of its own.
#pragma once

#include "kernels/gemv/gemv.h"

namespace ingot::kernels {

/// Whether the group begins with a norm.
bool has_norm(const Group& group);
/// Why the group is not a norm and a group that `product` accepts.
std::optional<std::string> refuse_normed(const Group& group,
                                         std::optional<std::string> (*product)(const Group&));
void layout_normed(LayoutArgs& args, void (*product)(LayoutArgs&));
std::vector<Tactic> normed_tactics(const Problem& p);
Emitted emit_normed(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
