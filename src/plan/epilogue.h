// SPDX-License-Identifier: Apache-2.0
// Epilogues: a group is a main node followed by at most one map of its result. Kernels of all
// backends share these checks and add their own.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

/// The map after the main node, or null.
const Node* epilogue_of(const Group& group);
/// The reason why the group is not a main node with one result, followed by at most one map with
/// the result's shape that makes the group's only output; nullopt when it is.
std::optional<std::string> refuse_epilogue(const Group& group);
/// The reason why some elements of the group are packed in memory; elements of `apart` may be.
std::optional<std::string> refuse_packed(const Group& group, Value apart = {});

/// The number of instructions that an instruction reads.
int argument_count(const ExprInstr& c);
/// The number of reads of each instruction; the result counts once more.
std::vector<int> uses_of(const Expr& e);

} // namespace ingot::plan
