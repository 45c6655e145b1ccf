// SPDX-License-Identifier: Apache-2.0
// Regions: what slices, permutations and reshapes over axes of one element leave of a value.
#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace ingot::passes {

struct Region {
    Value base;
    Dims starts, sizes; // by axis of the base
    std::vector<int64_t> steps;
    std::vector<int64_t> axes; // of the base, for each axis of the viewed value; -1: one element
};

/// A value as views of another one; the view nearest to that one is first.
struct Viewed {
    Value base;
    std::vector<const Node*> views;

    /// The region that the views leave of `r`; nullopt where a view is none of regions.
    std::optional<Region> region(const Graph& g, Region r) const;
};
Viewed viewed(const Graph& g, Value v);
std::optional<Region> region_of(const Graph& g, Value v);

/// Both regions side by side along `axis` of the values that they are, as one.
std::optional<Region> joined(const Region& a, const Region& b, size_t axis);
/// The elements of the region, with the axes of the base.
Value sliced(Graph& g, const Region& r);
/// v, which has the axes of the base, as the region's views show it, with these dims; and back.
Value as_viewed(Graph& g, const Region& r, Value v, const Dims& dims);
Value as_in_base(Graph& g, const Region& r, Value v);

} // namespace ingot::passes
