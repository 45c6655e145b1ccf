// SPDX-License-Identifier: Apache-2.0
// The ops of the family copy.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

std::optional<std::string> refuse_pad(const Group& group);
Emitted emit_pad(const Problem& p, const Tactic& t);
std::optional<std::string> refuse_iota(const Group& group);
Emitted emit_iota(const Problem& p, const Tactic& t);
std::optional<std::string> refuse_random(const Group& group);
Emitted emit_random(const Problem& p, const Tactic& t);
std::optional<std::string> refuse_concat(const Group& group);
Emitted emit_concat(const Problem& p, const Tactic& t);
std::optional<std::string> refuse_packed_view(const Group& group);
Emitted emit_packed_view(const Problem& p, const Tactic& t);

/// The unsigned type of a dtype's width, for moving elements unchanged.
DType raw_dtype(DType t);

} // namespace ingot::kernels
