// SPDX-License-Identifier: Apache-2.0
// The map after a main node, as oneDNN post-ops.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/interface.h"

#include <optional>
#include <vector>

namespace ingot::cpu {

struct PostStep {
    onednn::Function function = onednn::Function::Linear;
    float alpha = 0;
    float beta = 0;
    int input = -1; // of the map, for binary functions
};

/// The chain of steps that computes `e` from its input `main`; nullopt when there is none: a type
/// other than f32, a function that oneDNN lacks, several paths. Unary functions are recognised by
/// their values, so the spelling does not matter. Sums of i32 count as f32 where the map converts
/// them first, and so do bytes that the map rounds to last, as a store does. `scales` says of each
/// input whether it is one number, finite and not 0: bytes times such a scale may be added too, in
/// three steps.
std::optional<std::vector<PostStep>> post_steps(const Expr& e, int main,
                                                const std::vector<bool>& scales = {});

/// The steps of a group's epilogue with their operands; empty without an epilogue.
struct Posts {
    std::vector<PostStep> steps;
    std::vector<Operand> operands; // parallel; broadcast to the result's shape
};
std::optional<Posts> posts_of(const StepArgs& args);

} // namespace ingot::cpu
