// SPDX-License-Identifier: Apache-2.0
// Random graphs for property tests: small shapes, several dtypes, symbolic sizes, every kind of op,
// with neighbours that passes can rewrite. The same seed gives the same graph.
#pragma once

#include "ir/graph.h"

namespace ingot::test {

struct RandomGraphOptions {
    int steps = 14;
    /// Results depend continuously on float inputs: no comparisons, rounding or orderings of
    /// floats.
    bool smooth = false;
};
Graph random_graph(uint64_t seed, const RandomGraphOptions& options = {});
/// Values for the graph's inputs with N = n, drawn from `seed`.
std::vector<Tensor> random_inputs(const Graph& g, uint64_t seed, int64_t n);

} // namespace ingot::test
