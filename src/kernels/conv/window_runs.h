// SPDX-License-Identifier: Apache-2.0
// The same convolution with more channels and fewer taps, where taps lie side by side in memory.
// The order of result positions stays.
#pragma once

#include "kernels/conv/conv_shape.h"

#include <optional>

namespace ingot::kernels {

/// Windows along one axis that no padding cuts: a window, with its channels, is one run in memory.
/// The runs, which may overlap, are the rows of a plain product: a pointwise convolution. nullopt
/// where windows are no such runs.
std::optional<ConvShape> windows_as_rows(const ConvShape& s);

/// For kernels that want few taps and short steps: runs become channels where there are any, else
/// `s`. Windows side by side, wide ones of few channels, and those along one axis: whole, or, where
/// padding cuts them, in groups of as many columns as steps and padding are multiples of.
ConvShape runs_as_channels(const ConvShape& s);

/// Whether rows and columns can be walked as pairs, with windows starting at the first of a pair:
/// columns alone, where there is but one row.
bool in_pairs(const ConvShape& s);

} // namespace ingot::kernels
