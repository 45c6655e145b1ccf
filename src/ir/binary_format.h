// SPDX-License-Identifier: Apache-2.0
// Constants that the writer and the reader of the binary form share; binary.cpp has the layout.
#pragma once

#include "ir/field_list.h"

#include <cstdint>

namespace ingot::binary {

inline constexpr uint64_t format_version = 1;
inline constexpr uint8_t tensor_none = 0;
inline constexpr uint8_t tensor_inline = 1;
inline constexpr uint8_t tensor_placed = 2;
inline constexpr int max_depth = 64;

} // namespace ingot::binary
