// SPDX-License-Identifier: Apache-2.0
// The bridge to the reference evaluation of single ops: for values known while planning, and for
// the rare ops and types that have no kernel of their own.
#pragma once

#include "ir/graph.h"

#include <memory>
#include <optional>
#include <string>

namespace ingot::plan {

class Device;
class Step;
struct Group;
struct StepArgs;

/// Evaluates one primitive by its OpDef. Each `run` draws other random numbers; run r adds r *
/// 0x9E3779B97F4A7C15 to the seed, so run 0 equals the evaluator. Errors: those of the op.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run = 0);
/// The same, with the random numbers of the device's run.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, Device& device);

/// For the kernel "reference": takes every primitive that can be evaluated.
std::optional<std::string> refuse_reference(const Group& group);
/// A step that evaluates the node on the host: correct, serial and slow. It reads operands that are
/// dense and row major, and allocates; on a device with memory of its own, it waits for earlier
/// work.
std::unique_ptr<Step> make_reference_step(const StepArgs& args);

} // namespace ingot::plan
