// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/host_tensor.h"

#include "api/tensorrt/convert.h"

#include <algorithm>

namespace ingot::api {

Tensor tensor_of(const HostTensor& given) {
    Shape shape = numbers_of(given.dims, "the shape");
    require(std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; }),
            ErrorCode::InvalidArgument, "got shape ", shape, ", expected sizes of 0 or more");
    int64_t count = count_of(shape);
    return weights_tensor({given.type, given.data, count}, std::move(shape), "the values");
}

std::span<const HostTensor> host_inputs(const HostTensor* inputs, int32_t count) {
    require(count >= 0 && (inputs != nullptr || count == 0), ErrorCode::InvalidArgument, "got ",
            count, " inputs at ", inputs == nullptr ? "a null address" : "an address",
            ", expected 0 or more at an address");
    return {inputs, static_cast<size_t>(count)};
}

} // namespace ingot::api
