// SPDX-License-Identifier: Apache-2.0
// The transformation of quantize.h on a graph: for networks that never were ONNX.
#pragma once

#include "ir/graph.h"
#include "workflow/quantization/quantize.h"

namespace ingot {

/// The graph, optimised (the AOT passes, without changing precision), with the scales of the cache
/// placed by the rules of quantizer_placement.h. Scales are found by value names, so the graph
/// needs the names it had at calibration. Errors: InvalidArgument when the graph is already
/// quantised, and when no tensor of the cache is in it.
Graph quantised_graph(const Graph& graph, const CalibrationCache& cache,
                      QuantizeReport* report = nullptr);

} // namespace ingot
