// SPDX-License-Identifier: Apache-2.0
// The lowered graph and plan of an engine on a backend, for the CPU or for a GPU, which may be
// absent. Also the names of all passes.
#pragma once

#include "engine/engine.h"

namespace ingot {

/// The graph after the lowering passes of the CPU (`capability` 0), or of a GPU of
/// this compute capability (90 for 9.0). Errors: Unsupported naming a node.
Graph lowered_graph(const Engine& engine, int capability, const CompileOptions& options);
/// The plan for inputs of these shapes, one each, as text (plan/plan_text.h): of the CPU
/// (`capability` 0), or of a GPU of this compute capability (90 for 9.0). Errors: InvalidArgument
/// naming an input; Unsupported naming a node.
std::string plan_text(const std::shared_ptr<const Engine>& engine, int capability,
                      std::span<const Shape> shapes, const CompileOptions& options);

/// The ahead-of-time passes, then those of the backends' lowering lists; each once.
std::vector<std::string> pass_names();
/// Errors: InvalidArgument for a name that no pass has, with the nearest one.
void check_pass_names(std::span<const std::string> names);

} // namespace ingot
