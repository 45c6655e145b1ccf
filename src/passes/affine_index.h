// SPDX-License-Identifier: Apache-2.0
// Integer tensors that are affine in their own indices: what iota, shape arithmetic and the views
// between them amount to.
#pragma once

#include "ir/rewrite.h"

namespace ingot::passes {

/// Element (i0, i1, ...) is offset + strides[0] * i0 + strides[1] * i1 + ...
struct AffineIndex {
    Dim offset = 0;
    Dims strides;
};
/// `assume` replaces symbols in all sizes: what is found holds where it holds.
std::optional<AffineIndex> affine_index(const Graph& g, Value v, const SymbolMap& assume = {},
                                        int depth = 0);

/// For each instruction of a map of these operands that compares integers: the result, where it is
/// the same for all elements. Nothing is said of maps without elements.
std::vector<std::optional<bool>> decided_comparisons(const Graph& g, const Expr& e,
                                                     std::span<const Value> operands,
                                                     const Dims& result);

} // namespace ingot::passes
