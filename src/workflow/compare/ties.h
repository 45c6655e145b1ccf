// SPDX-License-Identifier: Apache-2.0
// Ties: which of two equal scores comes first is nobody's business, yet indices, labels and boxes
// that follow the order of scores are other numbers then. These are told from real differences.
#pragma once

#include "ir/graph.h"
#include "workflow/compare/tensor_difference.h"

#include <optional>
#include <span>
#include <vector>

namespace ingot {

/// An output whose elements are indices along an axis of `scores`, chosen by them (ArgMax, TopK),
/// or a view of such.
struct Choice {
    size_t output = 0;
    Value indices;
    Value scores;
    int64_t axis = 0;
};
std::vector<Choice> choices(const Graph& g);

/// How many indices differ from the reference's though the scores that they choose are no more than
/// `slack` apart; nullopt where one differs otherwise, or is chosen twice. Tensors have the order
/// of elements of Choice::indices.
std::optional<int64_t> tied_choices(const Tensor& ours, const Tensor& reference,
                                    const Tensor& scores, int64_t axis, double slack);

/// Outputs of one run, ours and the reference's, with what is known of their differences.
struct ComparedOutput {
    const Tensor* ours = nullptr;
    const Tensor* reference = nullptr;
    TensorDifference* difference = nullptr;
};

/// Sets `tied` and `within` of outputs that are rows of scores (an output that agrees, one number a
/// row) where all such outputs agree once rows of equal scores are put in the reference's order.
/// Scores are equal where the reference's are no further apart than twice what ours are off.
void accept_reordered_rows(std::span<const ComparedOutput> outputs, double atol, double rtol);

} // namespace ingot
