// SPDX-License-Identifier: Apache-2.0
// The ordered list of passes that run ahead of time, and the function that runs it.
#pragma once

#include "passes/pass.h"

#include <functional>
#include <span>
#include <string>

namespace ingot {

/// In order; a pass may stand in it more than once.
std::span<const Pass* const> aot_passes();
/// The names in it, each once. For messages and help.
std::vector<std::string> aot_pass_names();
/// Errors: InvalidArgument with the nearest name.
const Pass& find_pass(std::string_view name);

/// Runs one pass on the bodies of a graph, innermost first, then on the graph. What it throws
/// carries the pass's name.
Graph run_pass(const Pass& pass, const Graph& g, const PassOptions& options = {});

struct PipelineOptions {
    PassOptions pass;
    /// Names of passes to leave out.
    std::vector<std::string> disabled;
    bool verify = true;
    /// Called after each pass that ran; may be empty.
    std::function<void(const Pass& pass, const Graph& g)> dump_after;
    /// Called before each pass with its place in the list; may be empty.
    std::function<void(const Pass& pass, size_t index, size_t count)> progress;
};
/// Runs the list; each pass is verified, timed and logged. Checks for interruption between passes.
Graph run_aot_passes(const Graph& g, const PipelineOptions& options = {});

} // namespace ingot
