// SPDX-License-Identifier: Apache-2.0
// Checks of a layer's inputs. Each check passes while the type is unknown, and throws
// InvalidArgument "input 0 'x' is f32[2,3], expected ...".
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

void expect_float(const LayerBase& layer, const InputTypes& in, size_t i);
/// Floats and integers, not bool.
void expect_number(const LayerBase& layer, const InputTypes& in, size_t i);
/// i32 or i64.
void expect_index(const LayerBase& layer, const InputTypes& in, size_t i);
void expect_dtype(const LayerBase& layer, const InputTypes& in, size_t i,
                  std::initializer_list<DType> allowed);
void expect_same_dtype(const LayerBase& layer, const InputTypes& in, size_t a, size_t b);
void expect_rank(const LayerBase& layer, const InputTypes& in, size_t i, int64_t least,
                 int64_t most = nv::Dims::MAX_DIMS);
/// Equal ranks, except for layers of a parsed model; sizes equal, or 1.
void expect_broadcast(const LayerBase& layer, const InputTypes& in,
                      std::initializer_list<size_t> which);
/// An axis of an input, 0 to rank - 1.
void expect_axis(const LayerBase& layer, const InputTypes& in, size_t i, int64_t axis);
/// Exactly one bit, which selects an axis of the input.
int64_t one_axis(uint32_t mask);

/// v, converted if it has another type.
Value as_dtype(Graph& g, Value v, DType t);
/// The default axis of softmax and concatenation.
inline int64_t third_from_last(int64_t rank) {
    return rank > 3 ? rank - 3 : 0;
}

} // namespace ingot::api
