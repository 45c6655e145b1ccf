// SPDX-License-Identifier: Apache-2.0
// Facts about shapes that several passes need.
#pragma once

#include "ir/dim.h"

#include <optional>
#include <vector>

namespace ingot::passes {

/// Two shapes of the same elements as products of common factors: `atoms` in order, and for each
/// axis of either shape how many of them it spans (none where its size is 1).
struct Refinement {
    Dims atoms;
    std::vector<size_t> a;
    std::vector<size_t> b;
};
/// nullopt where no such factors are found.
std::optional<Refinement> refine(const Dims& a, const Dims& b);

/// a / b when b divides it without remainder for all values of the symbols.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
/// Whether a <= b for all sizes.
bool always_le(const Dim& a, const Dim& b);
/// The shape without axes of size 1.
Dims without_ones(const Dims& d);
bool is_identity(const std::vector<int64_t>& perm);

} // namespace ingot::passes
