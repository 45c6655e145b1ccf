// SPDX-License-Identifier: Apache-2.0
// Values that an application gives in host memory.
#pragma once

#include "ingot.h"
#include "ir/tensor.h"

#include <span>

namespace ingot::api {

/// The caller's memory as a tensor, copied only where it is unaligned. Errors: InvalidArgument for
/// a null address or a size below 0, Unsupported for a type that Ingot lacks.
Tensor tensor_of(const HostTensor& given);

/// The inputs of an extern "C" function. Errors: InvalidArgument for a null address or a number
/// below 0.
std::span<const HostTensor> host_inputs(const HostTensor* inputs, int32_t count);

} // namespace ingot::api
