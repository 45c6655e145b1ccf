// SPDX-License-Identifier: Apache-2.0
// Runs a node over packed elements (4 bits) by kernels that address single elements: widens
// operands into scratch memory, and narrows results from it.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// The unpacked element type that holds every value of a packed type; other types unchanged.
DType unpacked_dtype(DType t);
bool has_packed(const Problem& p);
/// Launches that convert between operands of one shape.
Emitted emit_cast(const Operand& from, const Operand& to);

using TacticsOf = std::vector<Tactic> (*)(const Problem& p);
using EmitOf = Emitted (*)(const Problem& p, const Tactic& t);
std::vector<Tactic> unpacked_tactics(const Problem& p, TacticsOf tactics);
Emitted emit_unpacked(const Problem& p, EmitOf emit, const Tactic& t);

/// A family's functions for problems with or without packed operands.
template <TacticsOf F>
std::vector<Tactic> tactics_of_any(const Problem& p) {
    return has_packed(p) ? unpacked_tactics(p, F) : F(p);
}
template <EmitOf F>
Emitted emit_any(const Problem& p, const Tactic& t) {
    return has_packed(p) ? emit_unpacked(p, F, t) : F(p, t);
}

} // namespace ingot::kernels
