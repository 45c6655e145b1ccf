// SPDX-License-Identifier: Apache-2.0
// A map that follows a main node, as the list of functions that oneDNN applies to the result.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/library.h"

#include <optional>
#include <vector>

namespace ingot::cpu {

struct PostStep {
    onednn::Function function = onednn::Function::Linear;
    float alpha = 0;
    float beta = 0;
    int input = -1; // of the map, for functions of two operands
};

/// The chain of steps that computes `e` from its input `main`; nullopt when there is none: another
/// type than f32, a function that oneDNN lacks, more than one path. Functions of one operand are
/// recognised by their values, so that every spelling counts.
std::optional<std::vector<PostStep>> post_steps(const Expr& e, int main);

/// The steps of a group's epilogue with the operands they read: none without an epilogue.
struct Posts {
    std::vector<PostStep> steps;
    std::vector<Operand> operands; // parallel; broadcast to the result's shape
};
std::optional<Posts> posts_of(const StepArgs& args);

} // namespace ingot::cpu
