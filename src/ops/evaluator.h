// SPDX-License-Identifier: Apache-2.0
// The reference evaluator: runs any graph, one node after another, on plain loops. The oracle that
// every backend is tested against.
#pragma once

#include "ir/graph.h"

namespace ingot {

struct EvalOptions {
    /// Computes all floating-point arithmetic in f64; types are promoted, quantised types stay.
    bool f64 = false;
    /// Called with every value that was computed (not inside bodies); may be empty. With f64 the
    /// values are those of promoted_to_f64(g).
    std::function<void(Value, const Tensor&)> observe;
};

/// Runs `g`. Inputs are in order of g.inputs(), of exactly its dtypes (promoted ones when f64).
/// Symbols of input types are bound by the inputs' shapes; `symbols` gives those that are not.
/// Errors: InvalidArgument naming input, dimension, got and expected; what ops throw at run time.
std::vector<Tensor> evaluate(const Graph& g, std::span<const Tensor> inputs,
                             const EvalOptions& options = {}, Symbols symbols = {});

/// Binds the symbols of `dims` so that they evaluate to `shape`, and checks those already bound.
/// Single symbols are bound first; other expressions are checked. Errors as above, by `what`.
void bind_symbols(const Dims& dims, const Shape& shape, Symbols& symbols, std::string_view what);

/// The graph with every f16, bf16 and f32 (fp8 and fp4 casts stay as roundings) replaced by f64.
Graph promoted_to_f64(const Graph& g);

} // namespace ingot
