// SPDX-License-Identifier: Apache-2.0
// The list of all ops, generated from the files in src/ops: each defines an OpTable `<stem>_ops`
// that lists its OpDefs.
#pragma once

#include "ir/op.h"

#include <span>
#include <string_view>

namespace ingot {

using OpTable = std::span<const OpDef* const>;

std::span<const OpTable* const> all_ops();
/// The op with that name, or null. A hash lookup after the first call; thread safe.
const OpDef* find_op(std::string_view name);

} // namespace ingot
