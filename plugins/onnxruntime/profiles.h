// SPDX-License-Identifier: Apache-2.0
// Optimisation profiles as options say them: "x:1x3x224x224,y:1x77".
#pragma once

#include "plugins/onnxruntime/options.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace ingot::ort {

/// Shapes of inputs by name: least, usual and greatest.
using ShapeProfile = std::map<std::string, std::array<std::vector<int64_t>, 3>, std::less<>>;

/// Profile i has the i-th shape of each name in each of the three lists. No list: no profile.
/// Errors: InvalidArgument for a list that is missing or malformed, names or numbers of profiles
/// that differ, ranks that differ, and a least above a greatest.
std::vector<ShapeProfile> parse_profiles(const Options& options);

/// The profiles' part that concerns inputs of one engine. `shapes` has the rank of each open input
/// that needs a range: -1 stands for open sizes. Inputs that a profile leaves out are any size.
/// Errors: InvalidArgument for a rank that is not the input's.
std::vector<ShapeProfile> profiles_for(const std::vector<ShapeProfile>& profiles,
                                       const std::map<std::string, std::vector<int64_t>>& shapes);
/// Errors: InvalidArgument naming a profile's name that is none of `values`, and the `inputs`.
void check_profile_names(const std::vector<ShapeProfile>& profiles,
                         const std::vector<std::string>& values,
                         const std::vector<std::string>& inputs);

} // namespace ingot::ort
