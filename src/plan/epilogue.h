// SPDX-License-Identifier: Apache-2.0
// Epilogues: a group is a main node and, after it, at most one map of its result. Kernels of every
// backend ask here, then add what they cannot do themselves.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

/// The map after the main node, or null.
const Node* epilogue_of(const Group& group);
/// Why the group is not a main node with one result and at most one map after it, which has the
/// result's shape and makes the group's only output; nullopt when it is.
std::optional<std::string> refuse_epilogue(const Group& group);
/// Why not all elements of the group stand alone in memory; those of `apart` may be packed.
std::optional<std::string> refuse_packed(const Group& group, Value apart = {});

} // namespace ingot::plan
