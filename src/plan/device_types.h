// SPDX-License-Identifier: Apache-2.0
// Types for which a backend's device has units.
#pragma once

#include "plan/backend.h"

namespace ingot {

/// Of the GPU that the backend runs on: 90 for 9.0; 0 for the CPU. Defined by src/backends/cuda.
int compute_capability(const Backend& backend);
/// Whether it has units for products in this type.
bool is_fast(const Backend& backend, DType dtype);

} // namespace ingot
