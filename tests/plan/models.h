// SPDX-License-Identifier: Apache-2.0
// Small models, one for each kind of plan.
#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace ingot::test {

struct PlanModel {
    std::string name;
    Graph graph;
    std::vector<Tensor> inputs;
    /// CompileOptions::weight_budget.
    int64_t weight_budget = -1;
};

/// A chain of pointwise ops, a residual block of convolutions, attention, if, loop, a
/// data-dependent size, streamed and shared weights, sizes that differ from run to run, and results
/// inside a concatenation.
std::vector<PlanModel> plan_models();

/// Small numbers, the same for the same seed: floats of any kind, integers from 0 to 4, bools.
Tensor small_numbers(DType t, const Shape& shape, int64_t seed);
/// In the types of a graph's inputs.
std::vector<Tensor> small_inputs(const Graph& g, const Symbols& symbols);

} // namespace ingot::test
