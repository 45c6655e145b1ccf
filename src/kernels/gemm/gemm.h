// SPDX-License-Identifier: Apache-2.0
// Products of matrices, for families whose work contains one.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// All tactics, best first. The batch-invariant ones are those of mma.sync that do not split the
/// depth, where they run; else the generic one alone.
std::vector<Tactic> gemm_tactics(const Contraction& c, const Problem& p);
Emitted emit_gemm(const Contraction& c, const Arch& arch, const Tactic& t);

} // namespace ingot::kernels
