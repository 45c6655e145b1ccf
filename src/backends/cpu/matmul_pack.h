// SPDX-License-Identifier: Apache-2.0
// Packing of matrix operands into panels: `width` outer elements side by side for each depth.
#pragma once

#include "base/dtype.h"

#include <span>

namespace ingot::cpu {

/// Packs outer elements [0, count) into to[k * width + i]; fills up to `width` with zeros.
template <class T>
using PackPanel = void (*)(T* to, const void* base, std::span<const int64_t> outer,
                           std::span<const int64_t> depth, int64_t width);

/// For f32, f64 and unsigned 32 and 64-bit accumulation (which wraps as two's complement does).
template <class T>
PackPanel<T> pack_panel_of(DType stored);

/// Bytes widened to 16 bits, those of two depths in one element: k counts pairs, and the last has a
/// zero where the depth is odd.
PackPanel<uint32_t> pack_pairs_of(DType stored);

/// Whether offsets count up one by one.
bool consecutive(std::span<const int64_t> offsets);

} // namespace ingot::cpu
