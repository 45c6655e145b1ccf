// SPDX-License-Identifier: Apache-2.0
// Groups of a product, perhaps a map, and row_moments of what they make, as a second result: a
// kernel that can stores the moments with its tile, otherwise they take a launch of their own.
// Moments of many rows are not made at all.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// A family of products, as seen by groups that end with row_moments.
struct ProductWithMoments {
    std::optional<std::string> (*refuse)(const Group& group);
    void (*layout)(LayoutArgs& args);
    std::vector<Tactic> (*tactics)(const Problem& product);
    Emitted (*emit)(const Problem& product, const Tactic& t);
    /// For each tactic, whether it can store the moments in the same launch; and that launch.
    std::vector<char> (*stores_both)(const Problem& product, const Operand& moments,
                                     std::span<const Tactic> tactics);
    Emitted (*emit_both)(const Problem& product, const Operand& moments, const Tactic& t);
};

/// Whether the group ends with row_moments.
bool has_moments(const Group& group);
/// The functions of a family for such groups.
std::optional<std::string> refuse_moments(const Group& group, const ProductWithMoments& f);
void layout_moments(LayoutArgs& args, const ProductWithMoments& f);
std::vector<Tactic> moments_tactics(const Problem& p, const ProductWithMoments& f);
Emitted emit_moments(const Problem& p, const Tactic& t, const ProductWithMoments& f);

} // namespace ingot::kernels
