// SPDX-License-Identifier: Apache-2.0
// The section of kernels built ahead; per kernel: its key (32 hex digits), its size as a
// little-endian u64, its bytes.
#pragma once

#include "engine/container.h"
#include "plan/backend.h"

namespace ingot {

void write_kernels(ContainerWriter& out, const KernelBinaries& kernels);
/// Null without the section. Errors: InvalidEngine for a malformed one.
std::shared_ptr<const KernelBinaries> read_kernels(const Container& c);

} // namespace ingot
