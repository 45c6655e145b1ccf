// SPDX-License-Identifier: Apache-2.0
// precision with knowledge of the values: some numbers are too large for 16 bits.
#pragma once

#include "passes/pass.h"

namespace ingot::passes {

/// Which of `narrow`, values of g that would be stored or read in 16 bits, that type cannot hold.
/// g is a main graph, or the body of a node.
using BeyondNarrow = std::function<Values(const Graph& g, std::span<const Value> narrow)>;

/// The pass `precision`, in which nodes that make or read such values compute in f32.
Pass precision_within(BeyondNarrow beyond);

} // namespace ingot::passes
