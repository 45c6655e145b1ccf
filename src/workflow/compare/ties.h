// SPDX-License-Identifier: Apache-2.0
// Ties: the order of equal scores is unspecified, but indices, labels and boxes in that order
// differ with it. This tells ties from real differences.
#pragma once

#include "ir/graph.h"
#include "workflow/compare/tensor_difference.h"

#include <optional>
#include <span>
#include <vector>

namespace ingot {

/// An output whose elements are indices along an axis of `scores` chosen by these (ArgMax, TopK),
/// or a view of such an output.
struct Choice {
    size_t output = 0;
    Value indices;
    Value scores;
    int64_t axis = 0;
};
std::vector<Choice> choices(const Graph& g);

/// The number of indices that differ from the reference's while the chosen scores are at most
/// `slack` apart; nullopt when one differs otherwise or is chosen twice. The elements of both
/// tensors are in the order of Choice::indices.
std::optional<int64_t> tied_choices(const Tensor& ours, const Tensor& reference,
                                    const Tensor& scores, int64_t axis, double slack);

/// Outputs of one run, ours and the reference's, with their differences so far.
struct ComparedOutput {
    const Tensor* ours = nullptr;
    const Tensor* reference = nullptr;
    TensorDifference* difference = nullptr;
};

/// Sets `tied` and `within` of outputs whose rows follow scores (an output that agrees, one number
/// per row) when all such outputs agree after rows of equal scores are sorted into the reference's
/// order. Scores are equal when the reference's differ by at most twice our error.
void accept_reordered_rows(std::span<const ComparedOutput> outputs, double atol, double rtol);

} // namespace ingot
