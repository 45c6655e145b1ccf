// SPDX-License-Identifier: Apache-2.0
// Sizes that profiles leave no choice of: min and max agree, in all of them.
#pragma once

#include "ir/profile.h"

#include <string>
#include <utility>
#include <vector>

namespace ingot {

/// An input that is still to be added to a graph.
using NamedType = std::pair<std::string, Type>;

/// The inputs with the sizes that all profiles fix, wherever their names occur. A range that does
/// not fit its input is left to check_profile().
std::vector<NamedType> with_fixed_sizes(std::vector<NamedType> inputs,
                                        const std::vector<Profile>& profiles);

} // namespace ingot
