// SPDX-License-Identifier: Apache-2.0
// Specialisation: variants of kernels for the very shapes of a launch. Only literals differ, so
// results are the same bytes.
#pragma once

#include "kernels/family.h"

#include <optional>
#include <string>

namespace ingot::cuda {

/// The program of a launch with its integer arguments as literals; it takes the same arguments.
/// nullopt where that would save no division: then the generic kernel is as good.
std::optional<std::string> specialised_text(const kernels::Launch& l);

} // namespace ingot::cuda
