// SPDX-License-Identifier: Apache-2.0
// Stands in until copy/copy.cpp is there.
#include "base/error.h"
#include "kernels/copy/copy.h"

namespace ingot::kernels {

__attribute__((weak)) Emitted emit_copy(const Operand&, const Operand&, const Arch&) {
    fail(ErrorCode::Unsupported, "no copy kernel");
}

} // namespace ingot::kernels
