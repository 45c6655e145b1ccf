// SPDX-License-Identifier: Apache-2.0
// Specialisation: variants of kernels for the exact shapes of a launch. Only literals differ, so
// results are bit-equal.
#pragma once

#include "kernels/family.h"

#include <optional>
#include <string>

namespace ingot::cuda {

/// The launch's program with its integer arguments as literals; it takes the same arguments.
/// nullopt where that saves no division: then the generic kernel is as good.
std::optional<std::string> specialised_text(const kernels::Launch& l);

} // namespace ingot::cuda
