// SPDX-License-Identifier: Apache-2.0
// Profile: the shapes an engine is built for, per input: smallest, expected, largest.
#pragma once

#include "ir/graph.h"

#include <span>
#include <string>
#include <vector>

namespace ingot {

struct ShapeRange {
    std::string input;
    Shape min;
    Shape opt;
    Shape max;
    bool operator==(const ShapeRange&) const = default;
};

/// Inputs that are not listed may have any shape of their type.
struct Profile {
    std::vector<ShapeRange> inputs;
    bool operator==(const Profile&) const = default;
    const ShapeRange* find(std::string_view input) const;
};

/// Checks a profile against a graph's inputs. Errors: InvalidArgument naming input (with the
/// nearest name when it does not exist), dimension, got and allowed.
void check_profile(const Graph& g, const Profile& p);
/// Checks that a shape fits an input's type and lies inside one of the profiles; without profiles,
/// any shape that fits the type is valid. Errors: InvalidArgument naming input, dimension, got and
/// allowed.
void check_shape(const Graph& g, size_t input, const Shape& shape,
                 std::span<const Profile> profiles);
/// Bounds of each symbol over all profiles, where every profile bounds it.
Bounds symbol_bounds(const Graph& g, const std::vector<Profile>& profiles);
/// The default shape of an input: the first profile's opt, else its static shape, else 1 for every
/// symbol.
Shape default_shape(const Graph& g, size_t input, const std::vector<Profile>& profiles);

/// "1x3x224x224"; "scalar" for rank 0.
std::string shape_text(const Shape& s);
Shape parse_shape(std::string_view text);

} // namespace ingot
