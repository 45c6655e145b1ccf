// SPDX-License-Identifier: Apache-2.0
// One map over strided operands, with its vector width and loop order, then its kernel. The
// families pointwise and copy are built on it.
#pragma once

#include "ir/expr.h"
#include "kernels/pointwise/index_text.h"

namespace ingot::kernels {

struct MapJob {
    const Expr& body;
    std::span<const Operand> in; // broadcast to out's shape
    Operand out;
    std::string_view entry;
};

/// The loops of a job: axes in the order of the result's strides, merged.
struct MapLoops {
    Shape sizes;               // innermost last; at least one axis
    Shape out;                 // strides
    std::vector<Shape> in;     // strides, per input in use
    std::vector<int> used;     // inputs that the body reads
    std::vector<DType> dtypes; // of the inputs in use
    std::vector<const Operand*> operands;
    int64_t count = 0;
    bool wide = false; // 64-bit indices and offsets
    int vector = 1;    // elements along the innermost axis at once
    int unroll = 1;    // vectors per thread

    int64_t inner(size_t k) const { return in[k].back(); }
};
MapLoops map_loops(const MapJob& job);
/// The result's axis that is contiguous in some input but strided along the innermost axis; -1 when
/// no shared-memory tile would help.
int tile_axis(const MapLoops& loops);

Emitted emit_map(const MapJob& job);

namespace map_text {
// Parts of emit_map, one per form of loop.
Launch vectors(const MapJob& job, const MapLoops& loops);
Launch tiles(const MapJob& job, const MapLoops& loops, int axis);
Launch nibbles(const MapJob& job, const MapLoops& loops);
} // namespace map_text

} // namespace ingot::kernels
