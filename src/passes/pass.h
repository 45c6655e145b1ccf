// SPDX-License-Identifier: Apache-2.0
// Pass: a named function from graph to graph. Passes are pure: no global state, nothing about
// devices; running one twice gives the same as running it once.
#pragma once

#include "ir/rewrite.h"
#include "ops/ops.h"

#include <optional>
#include <string_view>

namespace ingot {

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
    /// Works on one graph, not on its bodies: the pipeline runs it on those first.
    Graph (*run)(const Graph& g, const PassOptions& options);
    /// Gives bit-equal results (signs of zeros apart); else results hold a tolerance.
    bool structural;
};

} // namespace ingot
