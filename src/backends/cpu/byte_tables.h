// SPDX-License-Identifier: Apache-2.0
// Parts of scalar expressions that are functions of one byte, and so tables of 256 results.
#pragma once

#include "ir/expr.h"

#include <array>
#include <cstddef>
#include <vector>

namespace ingot::cpu {

/// For each instruction that rounds to bytes and is a function of one byte: the earliest
/// instruction with such a byte; -1 for others and where a table would replace one instruction
/// alone. `numbers`: the inputs that are single constants (empty for none).
std::vector<int> byte_tables(const Expr& e, const std::vector<bool>& numbers = {});

/// The results of instruction `to` for each byte of `from`, by its bits. Nothing between them may
/// read an input.
std::array<std::byte, 256> table_entries(const Expr& e, int from, int to);

} // namespace ingot::cpu
