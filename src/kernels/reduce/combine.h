// SPDX-License-Identifier: Apache-2.0
// The literals for combine.cuh: the function, its type, and its identity.
#pragma once

#include "base/dtype.h"

#include <string>
#include <string_view>

namespace ingot::kernels {

/// FN of combine.cuh for "sum", "prod", "min" or "max".
int combine_index(std::string_view fn);
/// The device type for combining elements of `t`.
std::string_view combine_type(DType t);
/// A literal of that type: 0, 1, the largest or the smallest value of `t`.
std::string combine_identity(std::string_view fn, DType t);

} // namespace ingot::kernels
