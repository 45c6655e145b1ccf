// SPDX-License-Identifier: Apache-2.0
// Small graphs that together use every op; for tests that must hold for all of them.
#pragma once

#include "ops/ops.h"

namespace ingot::test {

/// Primitives, with symbolic sizes.
Graph primitives_graph();
/// Composites.
Graph composites_graph();
/// If, Loop (with a scanned result) and Fused.
Graph control_graph();
std::vector<Graph> sample_graphs();

} // namespace ingot::test
