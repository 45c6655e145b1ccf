// SPDX-License-Identifier: Apache-2.0
// Patterns of attention masks: conditions, or large negative numbers that are added to the scores.
#pragma once

#include "passes/raise.h"

namespace ingot::passes {

/// Whether a key is hidden completely when this number replaces its score, of that dtype.
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
/// The condition over [..., S, T] as causal, from comparisons of running indices or a constant
/// triangle.
std::optional<Causal> causal(const View& v, const Condition& c);

/// Conditions that must all hold: causal, and the rest.
struct Visible {
    std::optional<Causal> causal;
    std::vector<Condition> rest;
};
Visible visible(const View& v, const Condition& c);

/// A float mask: 0 where a condition holds, elsewhere a number that hides the key.
struct Penalty {
    Condition shown;
    double fill = 0;
};
std::optional<Penalty> penalty(const View& v, Term t, DType scores);

} // namespace ingot::passes
