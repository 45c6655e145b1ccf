// SPDX-License-Identifier: Apache-2.0
// Steps with data-dependent result sizes, in two halves; the host reads the size between them.
//
// For both ops: run the launches of `emit_..._count` with scratch memory of Emitted::scratch bytes;
// then the u64 at the start of that memory is the size of the result (nonzero's, and nms's,
// `count`). Allocate the result, and run the launches of `emit_..._write` with the SAME scratch
// memory, unchanged; p.out[0] is then the result's operand. `emit_..._count` does not look at
// p.out, which may be empty. Both halves are pure functions of the problem; the write half needs no
// more scratch than the count half asked for. A result of no elements needs no write half (it emits
// nothing then).
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// x -> i64 [rank, count], coordinates in row-major order; p.in[0] of any strides.
Emitted emit_nonzero_count(const Problem& p);
Emitted emit_nonzero_write(const Problem& p);

/// (boxes, scores, max_output, iou, score) -> i64 [count, 3]; operands of any strides, thresholds
/// on the device.
Emitted emit_nms_count(const Problem& p);
Emitted emit_nms_write(const Problem& p);

/// The reason why one of the two cannot run on the device; nullopt when it can.
std::optional<std::string> refuse_dynamic(const Group& group);

} // namespace ingot::kernels
