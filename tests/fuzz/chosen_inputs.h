// SPDX-License-Identifier: Apache-2.0
// Sizes of inputs chosen by bytes: right, wrong and hostile ones.
#pragma once

#include "chosen_graph.h"

#include <array>

namespace ingot {

/// One of the `small` sizes, or one that exceeds any memory; not one that only this machine may
/// lack.
inline int64_t choose_size(Choices& c, std::span<const int64_t> small) {
    static constexpr std::array<int64_t, 6> hostile = {-1,
                                                       INT64_MIN,
                                                       INT64_MAX,
                                                       int64_t{1} << 62,
                                                       (int64_t{1} << 59) + 16,
                                                       (int64_t{1} << 61) + 1};
    size_t choice = c.below(64);
    return choice < hostile.size() ? hostile[choice] : small[choice % small.size()];
}

/// Mostly a shape that fits the type, else any. Symbols without a value have that of `N`.
inline Shape choose_shape(Choices& c, const Type& t, const Symbols& symbols,
                          std::span<const int64_t> small) {
    Shape shape;
    for (const Dim& d : t.dims) {
        shape.push_back(d.try_eval(symbols).value_or(symbols.at("N")));
    }
    if (c.below(8) == 7 && !shape.empty()) {
        shape[c.below(shape.size())] = choose_size(c, small);
    }
    return shape;
}

} // namespace ingot
