// SPDX-License-Identifier: Apache-2.0
// oneDNN as libingot_cpu.so carries it: unpacked into memory, opened, its functions by name.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstddef>

namespace ingot::cpu::onednn {

struct Calls {
// The name of a member cannot stand in parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses)
#define INGOT_DNNL(function) decltype(&::function) function = nullptr;
#include "backends/cpu/onednn/calls.def"
#undef INGOT_DNNL
};

/// Opens the library that is linked into this one. False, with the reason in `why`, when that is
/// not possible. Called once.
bool open_calls(Calls& calls, char* why, size_t why_size) noexcept;

} // namespace ingot::cpu::onednn
