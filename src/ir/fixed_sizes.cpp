// SPDX-License-Identifier: Apache-2.0
#include "ir/fixed_sizes.h"

#include <algorithm>

namespace ingot {

namespace {

/// Whether a range has a size for each dimension, in order.
bool fits(const ShapeRange& r, const Type& t) {
    size_t rank = t.dims.size();
    if (r.min.size() != rank || r.opt.size() != rank || r.max.size() != rank) {
        return false;
    }
    for (size_t i = 0; i < rank; ++i) {
        if (r.min[i] < 0 || r.min[i] > r.max[i]) {
            return false;
        }
    }
    return true;
}

} // namespace

std::vector<NamedType> with_fixed_sizes(std::vector<NamedType> inputs,
                                        const std::vector<Profile>& profiles) {
    Graph g;
    for (const auto& [name, type] : inputs) {
        g.add_input(name, type);
    }
    std::vector<Profile> fitting = profiles;
    for (Profile& p : fitting) {
        std::erase_if(p.inputs, [&](const ShapeRange& r) {
            auto it = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const NamedType& n) { return n.first == r.input; });
            return it == inputs.end() || !fits(r, it->second);
        });
    }
    Bounds bounds = symbol_bounds(g, fitting);
    // Where a profile gives a range of sizes, the symbol stays open.
    for (const Profile& p : fitting) {
        for (const ShapeRange& r : p.inputs) {
            auto it = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const NamedType& n) { return n.first == r.input; });
            for (size_t i = 0; i < r.min.size(); ++i) {
                if (r.min[i] != r.max[i]) {
                    bounds.erase(std::string(it->second.dims[i].symbol_name()));
                }
            }
        }
    }
    auto fixed = [&](std::string_view symbol) -> std::optional<Dim> {
        auto it = bounds.find(symbol);
        bool one = it != bounds.end() && it->second.low == it->second.high;
        return one ? std::optional<Dim>(it->second.low) : std::nullopt;
    };
    for (auto& [name, type] : inputs) {
        for (Dim& d : type.dims) {
            d = d.substitute(fixed);
        }
    }
    return inputs;
}

} // namespace ingot
