// SPDX-License-Identifier: Apache-2.0
// Memory that a graph takes on a GPU: planned without the GPU, and its weights before the first
// run.
#pragma once

#include "plan/backend.h"

namespace ingot {

/// The memory of an execution, the largest over these shapes, on a GPU that is not here. Nothing is
/// compiled. Errors: those of list_kernels_ahead.
MemoryUse memory_ahead(const std::shared_ptr<const Graph>& graph,
                       std::span<const std::vector<Shape>> shapes, int compute_capability,
                       const CompileOptions& options);
/// Lowers the graph for a GPU, takes memory there for the constants that a run with the inputs'
/// default shapes reads, and begins to copy them; a run waits for them, and has the errors of
/// copying. Constants of bodies, and those behind a size that depends on data, follow when they are
/// planned. Compiles no kernel. While the result lives, executables of this graph with the same
/// memory, precision and limits share these weights. Null for the CPU. Errors: OutOfMemory, Device,
/// Unsupported with the node.
std::shared_ptr<const void> upload_weights(const Backend& backend,
                                           const std::shared_ptr<const Graph>& graph,
                                           const CompileOptions& options);

} // namespace ingot
