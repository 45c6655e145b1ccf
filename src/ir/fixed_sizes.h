// SPDX-License-Identifier: Apache-2.0
// Sizes that the profiles fix: min and max agree, in all profiles.
#pragma once

#include "ir/profile.h"

#include <string>
#include <utility>
#include <vector>

namespace ingot {

/// An input that has not been added to a graph yet.
using NamedType = std::pair<std::string, Type>;

/// The inputs with every fixed size substituted wherever its symbol occurs. A range that does not
/// fit its input is ignored here; check_profile() reports it.
std::vector<NamedType> with_fixed_sizes(std::vector<NamedType> inputs,
                                        const std::vector<Profile>& profiles);

} // namespace ingot
