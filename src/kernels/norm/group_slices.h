// SPDX-License-Identifier: Apache-2.0
// group_norm with channels innermost in memory, by slices of the channels: in one launch where the
// registers or the shared memory of a cluster hold a slice of an image, else in two.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// "cluster" and "slices", best first; none for other layouts.
std::vector<Tactic> group_slices_tactics(const Problem& p);
/// nullopt for a tactic of another algorithm.
std::optional<Emitted> emit_group_slices(const Problem& p, const Tactic& t);

} // namespace ingot::kernels
