// SPDX-License-Identifier: Apache-2.0
// Scores of attention as a pattern: what lies between a contraction of queries with keys and the
// softmax over them.
#pragma once

#include "passes/attention_mask.h"

namespace ingot::passes {

struct Scores {
    Value product; // the first contraction
    double scale = 1;
    double softcap = 0;
    std::vector<Value> added;    // float masks
    std::vector<Condition> keep; // elsewhere minus infinity
    std::optional<Causal> causal;
    // A replaced score that is not minus infinity: like an added mask.
    std::optional<Penalty> replaced;
    // [B, W, H, S, T], where scores of shape [B*W, H, S, T] were seen as windows of W while these
    // masks were added.
    std::optional<Dims> windows;
    std::vector<Value> added_to_windows;
};

/// The scores that the term computes, from the contraction outwards: scale, cap, then masks.
std::optional<Scores> scores(const View& v, Term t, DType dtype);

} // namespace ingot::passes
