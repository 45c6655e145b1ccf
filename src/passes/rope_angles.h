// SPDX-License-Identifier: Apache-2.0
// Tables of cosines and sines that repeat each angle, as rotary embeddings multiply with.
#pragma once

#include "passes/rules.h"

namespace ingot::passes {

/// The half of a table whose halves along the last axis are equal, or (interleaved) whose pairs of
/// neighbours are; nullopt where that is not known.
std::optional<Value> half_angles(Graph& g, Value table, bool interleaved);

} // namespace ingot::passes
