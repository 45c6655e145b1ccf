// SPDX-License-Identifier: Apache-2.0
// Joins small independent launches into one: their main cost is one more launch in the sequence.
#pragma once

#include "kernels/family.h"

#include <span>

namespace ingot::cuda {

/// Whether a launch can be joined: a one-dimensional grid of blocks of 256 threads, generated text
/// that uses blockIdx.x alone, and arguments that are pointers and integers.
bool can_join(const kernels::Launch& l);
/// The limit on blocks of all parts together: those that run at once.
int64_t most_joined_blocks(const kernels::Arch& arch);
/// One launch whose first blocks run the first part, and so on. Parts with equal texts share one.
kernels::Launch joined(std::span<const kernels::Launch* const> parts);

} // namespace ingot::cuda
