// SPDX-License-Identifier: Apache-2.0
// The verifier: the invariants of every graph. Runs after each pass and on graphs from files.
#pragma once

#include "base/error.h"
#include "ir/rewrite.h"

namespace ingot {

/// Checks that operands precede their uses, that inferring each node again gives its recorded
/// types, that inputs and outputs have unique names, that every symbol is defined by an input type
/// or an earlier node, and the same in all bodies. `code` is InvalidEngine for graphs from files.
/// Errors: `code`, naming graph, node and reason.
void verify(const Graph& g, ErrorCode code = ErrorCode::Internal);
/// The same without inferring types again: for a graph whose nodes have just been added.
void verify_names(const Graph& g, ErrorCode code = ErrorCode::Internal);

/// Whether what a pass or the planner makes is verified without being asked: the environment
/// variable INGOT_VERIFY_PASSES is set, as tests do for all their programs.
bool is_always_verified();

} // namespace ingot
