// SPDX-License-Identifier: Apache-2.0
// Runs a graph on the CPU backend and on the evaluator and compares all results.
#pragma once

#include "ir/graph.h"
#include "plan/backend.h"

#include <random>

namespace ingot::test {

struct CompareOptions {
    CompileOptions compile;
    double tolerance = 1e-5; // of the largest magnitude of each result
    int runs = 2;            // of the same execution: results must be the same bytes
};

/// Random elements: floats in [-2, 2], integers in [-8, 8] (unsigned: [0, 16]), both bools.
Tensor random_tensor(DType t, const Shape& shape, std::mt19937& random);
/// Fails the current test when a result differs in shape, in an integer, or beyond the tolerance.
void expect_close(const Tensor& got, const Tensor& expected, double tolerance,
                  std::string_view what);
/// With oneDNN and with own loops alone. Memory is poisoned before every run.
void expect_same_as_evaluator(const Graph& g, std::span<const Tensor> inputs,
                              CompareOptions options = {});
/// With random inputs of the graph's types under the given symbols.
void expect_same_as_evaluator(const Graph& g, const Symbols& symbols = {}, unsigned seed = 1,
                              CompareOptions options = {});

/// The steps that the CPU backend plans for a graph of fixed shapes.
std::vector<StepInfo> planned_steps(const Graph& g);

} // namespace ingot::test
