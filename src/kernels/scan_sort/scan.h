// SPDX-License-Identifier: Apache-2.0
// Cumulative sums, products, minima and maxima along an axis.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

std::vector<Tactic> scan_tactics(const Problem& p);
Emitted emit_scan(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
