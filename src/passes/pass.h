// SPDX-License-Identifier: Apache-2.0
// Pass: a named function from graph to graph. The list that runs ahead of time (pipeline.def) and
// the lists by which backends lower are made of passes, and one driver runs them all. Passes are
// pure: no global state; running one twice gives the same as running it once.
#pragma once

#include "ir/rewrite.h"
#include "ops/ops.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

/// Of passes that run ahead of time.
struct PassOptions {
    /// 16-bit floats for weights and activations (F16 or BF16); none keeps the model's types.
    std::optional<DType> precision;
    /// Constant folding: most bytes of one result, most bytes by which results may outgrow their
    /// operands (each, and all together), most scalar operations of all evaluations together.
    int64_t fold_bytes = int64_t{64} << 20;
    int64_t fold_growth = int64_t{1} << 20;
    int64_t fold_total_growth = int64_t{32} << 20;
    double fold_operations = 1e8;
};

struct Pass {
    std::string_view name;
    std::string_view summary;
    std::function<Graph(const Graph& g, const PassOptions& options)> run;
    /// Gives bit-equal results (signs of zeros apart); else results hold a tolerance.
    bool structural = false;
    /// `run` takes a graph with its bodies; else it works on one graph, and the driver runs it on
    /// the bodies first, other than those of groups (fused).
    bool whole = false;
};

/// Runs one pass on the bodies of a graph, innermost first, then on the graph. What it throws
/// carries the pass's name.
Graph run_pass(const Pass& pass, const Graph& g, const PassOptions& options = {});

struct PipelineOptions {
    PassOptions pass;
    /// Names of passes to leave out; those of other lists are passed over.
    std::vector<std::string> disabled;
    /// The graph is verified after each pass. The environment variable INGOT_VERIFY_PASSES asks for
    /// it too.
    bool verify = true;
    /// Called after each pass that ran; may be empty.
    std::function<void(const Pass& pass, const Graph& g)> dump_after;
    /// Called before each pass with its place in the list; may be empty.
    std::function<void(const Pass& pass, size_t index, size_t count)> progress;
};
/// Runs a list; each pass is timed and logged. Checks for interruption between passes.
Graph run_passes(std::span<const Pass* const> list, const Graph& g, const PipelineOptions& options);

} // namespace ingot
