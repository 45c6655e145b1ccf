// SPDX-License-Identifier: Apache-2.0
// Types in which a device computes more slowly than in f32.
#pragma once

#include "plan/backend.h"

#include <string>

namespace ingot {

/// A warning for a graph with products in f16 or bf16 on a device that has no loops for these: how
/// much longer they take, and what to do. "" where there is nothing to say.
std::string slow_types_warning(const Graph& g, const Backend& backend);

} // namespace ingot
