// SPDX-License-Identifier: Apache-2.0
// The symbolic contents of a map's result: the arithmetic on shapes.
#pragma once

#include "ops/primitives.h"

#include <span>
#include <vector>

namespace ingot {

/// As OpDef::host; empty where the result has open sizes, more than 1024 elements, or none that can
/// be known.
std::vector<HostRef> host_map(const Map& a, std::span<const HostRef> in, std::span<const Type> out);

} // namespace ingot
