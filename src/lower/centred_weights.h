// SPDX-License-Identifier: Apache-2.0
// Weights of a product that follows a layer norm, written anew so that the norm's scale, bias and
// mean vanish.
#pragma once

#include "ir/tensor.h"

#include <optional>
#include <span>
#include <vector>

namespace ingot::plan {

struct CentredWeights {
    /// scale W minus the mean of each column, in the type and layout of W. Rounding errors are
    /// carried along the depth: the sum of a column is zero but for one rounding.
    Tensor weights;
    std::vector<float> shift; // bias W, by column
};

/// `w`: 16-bit floats [depth, columns] where `depth_first`, else [columns, depth]; `scale` and
/// `bias` have an element for each position of the depth. nullopt when a result is not finite.
std::optional<CentredWeights> centred_weights(const Tensor& w, bool depth_first,
                                              std::span<const float> scale,
                                              std::span<const float> bias);

} // namespace ingot::plan
