// SPDX-License-Identifier: Apache-2.0
// Converts types, shapes and weights of the public API to Ingot's own, and back.
#pragma once

#include "NvInfer.h"
#include "base/error.h"
#include "ir/tensor.h"

#include <string>
#include <string_view>

namespace ingot::api {

namespace nv = nvinfer1;

/// Errors: InvalidArgument for an unknown number, Unsupported for a type that Ingot lacks.
DType dtype_of(nv::DataType t);
/// The API's type; a type without a name there maps to its nearest (f64: kFLOAT).
nv::DataType data_type_of(DType t);
/// "FLOAT", "INT64", ...
std::string_view name_of(nv::DataType t);

/// Whether a number is a current enumerator of E.
template <class E>
bool is_one_of(E value) {
    return static_cast<int32_t>(value) >= 0 && static_cast<int32_t>(value) < nv::EnumMax<E>();
}
/// Errors: InvalidArgument "<what> is <number>, expected 0 to <largest>".
template <class E>
E checked(E value, std::string_view what) {
    require(is_one_of(value), ErrorCode::InvalidArgument, what, " is ", static_cast<int64_t>(value),
            ", expected 0 to ", nv::EnumMax<E>() - 1);
    return value;
}

/// Unknown sizes become -1.
nv::Dims api_dims(const Dims& dims);
nv::Dims api_dims(const Shape& shape);
/// The Dims that mean "no shape".
nv::Dims no_dims();
/// The sizes. Errors: InvalidArgument for a rank outside 0 to 8.
Shape numbers_of(const nv::Dims& d, std::string_view what);
/// "[1,-1,3]", as shapes print in messages.
std::string text_of(const nv::Dims& d);
/// The axes whose bits are set. Errors: InvalidArgument for bits beyond the rank.
std::vector<int64_t> axes_of(uint32_t mask, int64_t rank, std::string_view what);

bool same_weights(const nv::Weights& a, const nv::Weights& b);
inline bool is_empty(const nv::Weights& w) {
    return w.count == 0;
}
/// The caller's memory as a tensor, copied only where it is unaligned. Errors: InvalidArgument when
/// the weight count differs from the shape's element count, or the memory is null.
Tensor weights_tensor(const nv::Weights& w, Shape shape, std::string_view what);
/// Checks type, count and pointer. Errors: InvalidArgument.
void check_weights(const nv::Weights& w, std::string_view what);

} // namespace ingot::api
