// SPDX-License-Identifier: Apache-2.0
// Masks of attention as patterns: which keys a query sees, said by conditions or by large negative
// numbers that are added to the scores.
#pragma once

#include "passes/raise.h"

namespace ingot::passes {

/// Whether a number hides a key for good when it replaces a score of that dtype.
bool hides(double fill, DType scores);

/// Query i sees key j exactly where j <= i + offset.
struct Causal {
    Dim offset;
};
/// The condition `t` over [..., S, T] as that, from comparisons of running indices or a constant
/// triangle.
std::optional<Causal> causal(const View& v, Term t);

/// A condition that must hold, as a conjunction: causal, and the rest (true where there is none).
struct Visible {
    std::optional<Causal> causal;
    std::vector<Term> rest;
};
Visible visible(const View& v, Term condition);

/// A float mask that is 0 where a condition holds and hides the key elsewhere.
struct Penalty {
    Term condition;
    bool negated = false; // the condition says which keys are hidden
    double fill = 0;
};
std::optional<Penalty> penalty(const View& v, Term t, DType scores);

} // namespace ingot::passes
