// SPDX-License-Identifier: Apache-2.0
// Dequantised operands of products: the narrow elements behind them, with scale and zero point.
#pragma once

#include "ops/ops.h"

#include <optional>
#include <vector>

namespace ingot::plan {

/// A dequantised value: (q - zero) * scale. `zero` may be invalid.
struct Dequantised {
    Value q;
    Value scale;
    Value zero;
    int64_t axis = 0;
    int64_t block = 0;
    DType dtype = DType::F32; // of the dequantised value
};

/// Whether it has one element.
bool is_one(const Graph& g, Value v);
/// The constant that a value is or repeats; null when neither.
const Tensor* repeated_constant(const Graph& g, Value v);

/// Whether a zero point is constant and 0 for all elements.
bool is_zero(const Graph& g, Value zero);

/// Looks through casts between floats, and through reshapes and permutes where one scale serves all
/// elements; those views then apply to the quantised elements, as new nodes of `g`.
std::optional<Dequantised> dequantised(Graph& g, Value v);

/// (q - zero) * scale in f32: narrow elements, a scale of f32, and a zero point or null, as
/// `dequantize` takes them. In parallel.
Tensor dequantised_constant(const Tensor& q, const Tensor& scale, const Tensor* zero,
                            const ops::Dequantize& a);

} // namespace ingot::plan
