// SPDX-License-Identifier: Apache-2.0
// Small launches that do not depend on each other as one: what each costs most is that it is one
// more in line.
#pragma once

#include "kernels/family.h"

#include <span>

namespace ingot::cuda {

/// Whether a launch can be a part of a joined one: a row of blocks of 256 threads with a generated
/// text that knows its block by blockIdx.x alone, and arguments that are pointers and integers.
bool can_join(const kernels::Launch& l);
/// The blocks of all parts together: as many as run at once.
int64_t most_joined_blocks(const kernels::Arch& arch);
/// One launch whose first blocks do what those of the first part do, and so on. Parts with equal
/// texts share one.
kernels::Launch joined(std::span<const kernels::Launch* const> parts);

} // namespace ingot::cuda
