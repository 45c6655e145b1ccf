// SPDX-License-Identifier: Apache-2.0
// View ops on placed operands: most need no work at all.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

/// The result of a view op as an alias of its operand; nullopt when no strides express it (then the
/// operand is copied to row major first, for which every view op succeeds). Elements of packed
/// types are not addressable one by one: for them only dense reshapes and bitcasts are views.
using ViewRule = std::optional<Operand> (*)(const Node& n, const Operand& in, const Type& out,
                                            const Symbols& symbols);
/// Null for ops that are not views.
ViewRule find_view(const OpDef& def);
/// Whether the node is a view of its operand (packed types: see above).
bool is_view(const Graph& g, const Node& n);

} // namespace ingot::plan
