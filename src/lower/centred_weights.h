// SPDX-License-Identifier: Apache-2.0
// Weights of a product that follows a layer norm, written anew so that the norm's scale, bias and
// mean vanish.
#pragma once

#include "ir/tensor.h"

#include <optional>
#include <span>

namespace ingot::plan {

struct CentredWeights {
    /// scale W minus the mean of each column, in the type and layout of W. Rounding errors are
    /// carried along the depth: the sum of a column is zero but for one rounding.
    Tensor weights;
    Tensor shift; // bias W, by column, in f32
};

/// `w`: 16-bit floats [depth, columns] where `depth_first`, else [columns, depth]; `scale` and
/// `bias` have an element for each position of the depth. nullopt when a result is not finite. Both
/// results are lazy where the largest weight proves that all will be; those of joined weights are
/// joined.
std::optional<CentredWeights> centred_weights(const Tensor& w, bool depth_first,
                                              std::span<const float> scale,
                                              std::span<const float> bias);

} // namespace ingot::plan
