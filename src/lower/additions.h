// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// Whether the node is a map that adds two values in f32.
bool is_addition(const Node& n);

} // namespace ingot::plan
