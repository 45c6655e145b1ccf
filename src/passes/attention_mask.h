// SPDX-License-Identifier: Apache-2.0
// Masks of attention as patterns: which keys a query sees, said by conditions or by large negative
// numbers that are added to the scores.
#pragma once

#include "passes/raise.h"

namespace ingot::passes {

/// Whether a number hides a key for good when it replaces a score of that dtype.
bool hides(double fill, DType scores);

/// A condition, or its opposite.
struct Condition {
    Term term;
    bool negated = false;
};

/// Query i sees key j exactly where j <= i + offset.
struct Causal {
    Dim offset;
};
/// The condition over [..., S, T] as that, from comparisons of running indices or a constant
/// triangle.
std::optional<Causal> causal(const View& v, const Condition& c);

/// Conditions that must all hold: causal, and the rest.
struct Visible {
    std::optional<Causal> causal;
    std::vector<Condition> rest;
};
Visible visible(const View& v, const Condition& c);

/// A float mask that is 0 where a condition holds and hides the key elsewhere.
struct Penalty {
    Condition shown;
    double fill = 0;
};
std::optional<Penalty> penalty(const View& v, Term t, DType scores);

} // namespace ingot::passes
