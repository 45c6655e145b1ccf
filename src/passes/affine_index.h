// SPDX-License-Identifier: Apache-2.0
// Integer tensors that are affine in their own indices, such as iota, shape arithmetic and views of
// them.
#pragma once

#include "ir/rewrite.h"

namespace ingot::passes {

/// Element (i0, i1, ...) is offset + strides[0] * i0 + strides[1] * i1 + ...
struct AffineIndex {
    Dim offset = 0;
    Dims strides;
};
/// `assume` replaces symbols in all sizes: the result holds under that assumption.
std::optional<AffineIndex> affine_index(const Graph& g, Value v, const SymbolMap& assume = {},
                                        int depth = 0);

/// For each integer comparison in a map over these operands: its result, where it is equal for all
/// elements. Says nothing of maps without elements.
std::vector<std::optional<bool>> decided_comparisons(const Graph& g, const Expr& e,
                                                     std::span<const Value> operands,
                                                     const Dims& result);

} // namespace ingot::passes
