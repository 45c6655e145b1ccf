// SPDX-License-Identifier: Apache-2.0
// Patterns of attention scores: the nodes between the product of queries with keys and the softmax.
#pragma once

#include "passes/attention_mask.h"

namespace ingot::passes {

struct Scores {
    Value product; // the first contraction
    double scale = 1;
    double softcap = 0;
    std::optional<Value> head_scale; // a further factor for each head, [H,1,1] or [1,H,1,1]
    std::vector<Value> added;        // float masks; one that is added twice is here twice
    std::vector<Condition> keep;     // minus infinity elsewhere
    std::optional<Causal> causal;
    // Scores replaced by a number other than minus infinity: like an added mask.
    std::optional<Penalty> replaced;
    // [B, W, H, S, T] when scores of shape [B*W, H, S, T] were reshaped into windows of W while
    // these masks were added.
    std::optional<Dims> windows;
    std::vector<Value> added_to_windows;
};

/// The scores that the term computes, read backwards from the softmax: scale, cap, then masks.
std::optional<Scores> scores(const View& v, Term t, DType dtype);

} // namespace ingot::passes
