// SPDX-License-Identifier: Apache-2.0
// Optimisation profiles from options: "x:1x3x224x224,y:1x77".
#pragma once

#include "plugins/onnxruntime/options.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace ingot::ort {

/// Shapes of inputs by name: min, opt and max.
using ShapeProfile = std::map<std::string, std::array<std::vector<int64_t>, 3>, std::less<>>;

/// Profile i has the i-th shape of each name in each of the three lists. Without lists there are no
/// profiles. Errors: InvalidArgument for a missing or malformed list, differing names, profile
/// counts or ranks, and a min above its max.
std::vector<ShapeProfile> parse_profiles(const Options& options);

/// Restricts the profiles to the inputs of one engine. `shapes` has the rank of each open input
/// that needs a range, with -1 for open sizes. Inputs that a profile leaves out may have any size.
/// Errors: InvalidArgument for a rank other than the input's.
std::vector<ShapeProfile> profiles_for(const std::vector<ShapeProfile>& profiles,
                                       const std::map<std::string, std::vector<int64_t>>& shapes);
/// Errors: InvalidArgument for a profile's name that is not in `values`, listing the `inputs`.
void check_profile_names(const std::vector<ShapeProfile>& profiles,
                         const std::vector<std::string>& values,
                         const std::vector<std::string>& inputs);

} // namespace ingot::ort
