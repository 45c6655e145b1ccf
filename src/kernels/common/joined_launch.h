// SPDX-License-Identifier: Apache-2.0
// Joins small independent launches into one: their main cost is one more launch in the sequence.
#pragma once

#include "kernels/family.h"

#include <span>

namespace ingot::kernels {

/// Whether a launch can be joined: a one-dimensional grid of blocks of 256 threads, generated text
/// that uses blockIdx.x alone, and arguments that are pointers and integers; pointers into scratch
/// memory too only where all parts have the same.
bool can_join(const Launch& l, bool same_scratch = false);
/// The limit on blocks of all parts together: those that run at once.
int64_t most_joined_blocks(const Arch& arch);
/// One launch whose first blocks run the first part, and so on. Parts with equal texts share one.
Launch joined(std::span<const Launch* const> parts);
/// The same without its program, which depends on those of the parts alone.
Launch joined_arguments(std::span<const Launch* const> parts);

} // namespace ingot::kernels
