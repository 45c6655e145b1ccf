// SPDX-License-Identifier: Apache-2.0
// The scatter half of the family gather.
#pragma once

#include "kernels/copy/movement.h"

namespace ingot::kernels {

std::optional<std::string> refuse_scatter(const Group& group);
Emitted emit_scatter(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
