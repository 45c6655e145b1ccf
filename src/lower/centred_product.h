// SPDX-License-Identifier: Apache-2.0
// Products with constant weights that follow a layer norm, rewritten to read the raw rows:
//
//     (norm(x) * scale + bias) W + b = norm(x) V + (bias W + b),  V = scale W - its columns' means
//
// and norm(x) V = deviation(x)^-1 (x V).
#pragma once

#include "ir/rewrite.h"
#include "lower/centred_weights.h"
#include "ops/primitives.h"
#include "plan/kernel.h"

#include <map>

namespace ingot::plan {

/// A product finds the deviations of rows up to this size itself. For longer ones that delays each
/// of its steps, and a norm in a launch of its own costs the same for all. Measured on an
/// H200: -2 to -11 % of a model up to 512 elements, +3 to +8 % at 768.
constexpr int64_t most_found_elements = 512;

/// A product, or one with the map behind it, as nodes of `g`.
struct ProductNode {
    const Graph* g = nullptr;
    const Node* dot = nullptr;
    const Node* map = nullptr;
    std::map<uint32_t, Value> outer; // values of `g` in the graph around it

    Value outside(Value v) const {
        auto at = outer.find(v.id);
        return at == outer.end() ? v : at->second;
    }
};

/// `n` as a product, if it is one: of `in`, values of the graph around `g`.
std::optional<ProductNode> product_of(const Graph& g, const Node& n, std::span<const Value> in);

/// Whether the product's weights can have the scale, bias and mean of `norm` in them: a layer norm
/// over the last axis of 16-bit floats, constant weights and vectors. Both are nodes of `out`, or
/// of a graph with its values.
bool can_fold(const Graph& out, const ProductNode& p, const Node& norm);
/// The input of the product's map that is a constant with an element per column, which is added to
/// the sum and read nowhere else; -1 if there is none.
int bias_of(const Graph& out, const ProductNode& p, int64_t columns);
/// Whether the map adds its input `row`, and nothing before it, to the sum of the product and
/// `bias` (of bias_of), and reads neither elsewhere: (product + bias) + row. A constant that is
/// added to the row may be added to the bias then.
bool adds_to_biased_sum(const ProductNode& p, int bias, int row);
/// `shift`, an element per column, added to `bias`; as a row of its own where that is null. Lazy.
Tensor shift_row(const Tensor& shift, const Tensor* bias, DType type);

/// nullopt also where a weight would not be finite.
std::optional<CentredWeights> fold(const Graph& out, const ProductNode& p, const Node& norm);

/// Adds the product of `rows`, which are not normalised, by centred weights, as a group
/// "centred_dot". `moments`: of the rows (ops/row_moments.h); invalid: the kernel finds the
/// deviations. `leaves_rows`: the rows normalised by moments are a second result, which only
/// moment_norm may read. nullopt where no kernel takes the group.
std::optional<Values> add_centred_product(const KernelSet& kernels, Graph& g, const ProductNode& p,
                                          const Node& norm, Value rows, Value moments,
                                          CentredWeights centred, bool leaves_rows = false);

} // namespace ingot::plan
