// SPDX-License-Identifier: Apache-2.0
// Packs matrix operands into panels: `width` outer elements side by side for each depth.
#pragma once

#include "base/dtype.h"

#include <span>

namespace ingot::cpu {

/// Packs outer elements [0, count) into to[k * width + i]; pads up to `width` with zeros.
template <class T>
using PackPanel = void (*)(T* to, const void* base, std::span<const int64_t> outer,
                           std::span<const int64_t> depth, int64_t width);

/// For f32, f64 and unsigned 32 and 64-bit accumulation (which wraps as two's complement does).
template <class T>
PackPanel<T> pack_panel_of(DType stored);

/// Bytes widened to 16 bits, two depths per element: k counts pairs; with an odd depth, the last
/// pair holds a zero.
PackPanel<uint32_t> pack_pairs_of(DType stored);

/// Bytes as they are, four depths per element: k counts quads; the last is filled up with zeros.
void pack_quads(uint32_t* to, const void* base, std::span<const int64_t> outer,
                std::span<const int64_t> depth, int64_t width);

/// Whether the offsets are consecutive.
bool consecutive(std::span<const int64_t> offsets);

} // namespace ingot::cpu
