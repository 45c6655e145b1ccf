// SPDX-License-Identifier: Apache-2.0
// The oneDNN inside libingot_cpu.so: unpacked into memory, opened, functions looked up by name.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstddef>

namespace ingot::cpu::onednn {

struct Calls {
// A member's name cannot be parenthesised: NOLINTNEXTLINE(bugprone-macro-parentheses)
#define INGOT_DNNL(function) decltype(&::function) function = nullptr;
#include "backends/cpu/onednn/calls.def"
#undef INGOT_DNNL
};

/// Opens the library that is linked into this one. Returns false on failure, with the reason in
/// `why`. Called once.
bool open_calls(Calls& calls, char* why, size_t why_size) noexcept;

} // namespace ingot::cpu::onednn
