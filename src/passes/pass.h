// SPDX-License-Identifier: Apache-2.0
// Pass: a named function from graph to graph. The list that runs ahead of time (pipeline.def) and
// the lists by which backends lower are made of passes, and one driver runs them all. Passes are
// pure: no global state; running one twice gives the same as running it once.
#pragma once

#include "ir/rewrite.h"
#include "ops/ops.h"

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

/// For ahead-of-time passes; facts of the device for those that lower.
struct PassOptions {
    /// 16-bit floats for weights and activations (F16 or BF16); none keeps the model's types.
    std::optional<DType> precision;
    /// Limits of constant folding: bytes of one result, bytes by which results that stay may
    /// outgrow the constants they are made of (each, and in total), and scalar operations in total.
    int64_t fold_bytes = int64_t{256} << 20;
    int64_t fold_growth = int64_t{1} << 20;
    int64_t fold_total_growth = int64_t{32} << 20;
    double fold_operations = 1e9;
    /// Whether the device multiplies f8e4m3 by f8e4m3 faster than 16-bit floats.
    bool f8_products = false;
    /// Whether its products of f32 may round their operands, to TF32.
    bool rounds_products = false;
    /// Whether it convolves bytes faster than floats.
    bool byte_convolutions = false;
    /// Scalar operations from which a convolution over three axes is slower than one over two, with
    /// the copies that makes of it: of 16-bit floats, and of f32.
    double flat_convolutions = INFINITY;
    double flat_f32_convolutions = INFINITY;
    /// Bytes of channels that its convolutions over all three axes of one volume multiply at once;
    /// 0: it has none that are as fast as those over two.
    int64_t volume_slab = 0;
    /// Parts of the depth that products of few results are split into at most, to fill the device;
    /// 0: none are, as where sums must not depend on other sizes.
    int64_t depth_parts = 0;
};

/// Made by designated initialisers, so that its promises have names: a false one breaks results.
struct Pass {
    std::string_view name;
    std::string_view summary;
    std::function<Graph(const Graph& g, const PassOptions& options)> run;
    /// Results stay bit-equal (apart from signs of zeros); without it, within a tolerance.
    bool structural = false;
    /// `run` walks the bodies of `if` and `loop` itself (rewrite_all), which rewrite() and
    /// apply_rules() do not. Without it the driver runs it on each body, innermost first, then on
    /// the graph. The bodies of groups (fused) are left alone.
    bool handles_bodies = false;
};

/// Runs one pass on the bodies of a graph, innermost first, then on the graph. Errors carry the
/// pass's name.
Graph run_pass(const Pass& pass, const Graph& g, const PassOptions& options = {});

struct PipelineOptions {
    PassOptions pass;
    /// Names of passes to leave out; names from other lists are ignored.
    std::vector<std::string> disabled;
    /// Verifies the graph after each pass, as the environment variable INGOT_VERIFY_PASSES does.
    bool verify = true;
    /// Called after each pass that ran; may be empty.
    std::function<void(const Pass& pass, const Graph& g)> dump_after;
    /// Called before each pass with its index in the list; may be empty.
    std::function<void(const Pass& pass, size_t index, size_t count)> progress;
};
/// Runs a list; each pass is timed and logged. Checks for interruption between passes.
Graph run_passes(std::span<const Pass* const> list, const Graph& g, const PipelineOptions& options);

} // namespace ingot
