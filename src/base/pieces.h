// SPDX-License-Identifier: Apache-2.0
// Long data in pieces, so that work on it can be stopped.
#pragma once

#include "base/interrupt.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ingot {

/// A hash or a write of one piece takes a few milliseconds.
inline constexpr size_t piece_bytes = size_t{16} << 20;

/// f(piece) for each piece in order; an empty span is one empty piece. Errors: Interrupted between
/// two pieces, never for a single one: threads that cannot throw may work on those.
template <class F>
void for_pieces(std::span<const std::byte> data, F&& f) {
    for (f(data.first(std::min(piece_bytes, data.size()))); data.size() > piece_bytes;) {
        check_interrupt();
        data = data.subspan(piece_bytes);
        f(data.first(std::min(piece_bytes, data.size())));
    }
}

} // namespace ingot
