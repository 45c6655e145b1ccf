// SPDX-License-Identifier: Apache-2.0
// A group in two launches in place of one, for shapes at which that is faster: its first nodes, and
// the rest, which reads their result from scratch memory.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// `joined` and the best tactic of the rest's family, named apart_..., with the cost of both parts,
/// best first. It is the only one where there are more elements between than `most_elements`, and
/// left out where results must not depend on the batch. `count`: nodes of the first part.
std::vector<Tactic> with_apart(std::vector<Tactic> joined, const Problem& p, size_t count,
                               int64_t most_elements);
/// Whether t runs the parts apart.
bool is_apart(const Tactic& t);
Emitted emit_apart(const Problem& p, size_t count, const Tactic& t);

} // namespace ingot::kernels
