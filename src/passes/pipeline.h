// SPDX-License-Identifier: Apache-2.0
// The ordered list of ahead-of-time passes.
#pragma once

#include "passes/pass.h"

namespace ingot {

/// In order; a pass may occur more than once.
std::span<const Pass* const> aot_passes();
/// The distinct names, for messages and help.
std::vector<std::string> aot_pass_names();
/// Errors: InvalidArgument with the nearest name.
const Pass& find_pass(std::string_view name);
Graph run_aot_passes(const Graph& g, const PipelineOptions& options = {});

} // namespace ingot
