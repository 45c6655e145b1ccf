// SPDX-License-Identifier: Apache-2.0
// What quantize.h does to an ONNX model, done to a graph: for networks that never were ONNX.
#pragma once

#include "ir/graph.h"
#include "workflow/quantization/quantize.h"

namespace ingot {

/// The graph, optimised (the AOT passes, without changing precision), with the scales of the cache
/// placed in it by the rules of placement.h. Scales are found by the names of values, so the graph
/// needs those that it had when it was calibrated. Errors: InvalidArgument when the graph quantises
/// already, and when the cache has no tensor of it.
Graph quantised_graph(const Graph& graph, const CalibrationCache& cache,
                      QuantizeReport* report = nullptr);

} // namespace ingot
