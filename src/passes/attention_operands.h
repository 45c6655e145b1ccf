// SPDX-License-Identifier: Apache-2.0
// Operands of the two products of attention, with what scales, permutes and repeats them peeled
// off.
#pragma once

#include "passes/attention_scores.h"

namespace ingot::passes {

using Axes = std::vector<int64_t>;

// An operand of a contraction: a value, and its axes as [batch..., rows, columns]; as [rows,
// columns] where all heads share it, and without the first batch axis where that has one element.
struct Operand {
    Value value;
    Axes axes;
    double scale = 1;
};

// The contraction with `batch` batch axes, one contracted and one free axis on each side.
struct Contraction {
    Operand a;
    Operand b;
    size_t batch = 0;
};

/// Rows of both are the free axes; columns the contracted ones.
std::optional<Contraction> contraction(const Graph& g, const Node& n);
/// Peels permutations off an operand.
void peel_permutation(const Graph& g, Operand& o);
/// Peels scalar factors and permutations off an operand.
void peel(Graph& g, const View& v, Operand& o);
/// Where heads (axis `head`) repeat groups: the operand before the repetition, with an axis of 1
/// after it.
std::optional<Value> before_repetition(const Graph& g, const Operand& o, size_t head);
/// Dims of [batch..., rows, columns] as [B, H, rows, columns]: all batch axes but the last are B.
Dims four_dims(const Dims& d, size_t batch);
/// The operand as [B, H, rows, columns].
Value in_order(Graph& g, const Operand& o, size_t batch);

} // namespace ingot::passes
