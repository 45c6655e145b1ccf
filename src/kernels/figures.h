// SPDX-License-Identifier: Apache-2.0
// Figures of a GPU for reports: its peaks, and how many blocks of a kernel it holds.
#pragma once

#include "kernels/arch.h"
#include "plan/plan_report.h"

namespace ingot::kernels {

/// `tf32`: products of f32 may use tensor cores.
plan::DeviceFigures figures_of(const Arch& arch, bool tf32);

/// Blocks that an SM holds at once, at least 1; `registers` a thread, 0 if unknown, `shared` bytes
/// a block, static and dynamic.
int blocks_per_sm(const Arch& arch, int64_t threads, int registers, int64_t shared);

} // namespace ingot::kernels
