// SPDX-License-Identifier: Apache-2.0
// Recognises the matrices of discrete Fourier transforms by their numbers. A product with one
// cancels large terms, so that operands rounded to 10 bits lose the small frequencies.
#pragma once

#include "ir/graph.h"

#include <functional>

namespace ingot {

/// Whether an f32 constant holds cosines, sines or both at evenly spaced frequencies, each element
/// of a frequency scaled by any window. Two axes, apart from those of size 1: frequencies and
/// samples, in either order. Cosines and sines may be one above the other or alternate. A trained
/// weight is refused after one column; a basis costs a few passes over it.
/// `strides` are in elements, as many as `shape` has sizes.
bool is_dft_basis(const float* values, std::span<const int64_t> shape,
                  std::span<const int64_t> strides);
/// The same for values that lie anywhere: `value(i)` is the one at offset i.
bool is_dft_basis(const std::function<float(int64_t)>& value, std::span<const int64_t> shape,
                  std::span<const int64_t> strides);

/// Whether the node multiplies by such a constant: a dot or a convolution.
bool multiplies_by_dft_basis(const Graph& g, const Node& n);

} // namespace ingot
