// SPDX-License-Identifier: Apache-2.0
// The reference evaluator: runs any graph node by node on plain loops. The oracle for every
// backend.
#pragma once

#include "ir/graph.h"

namespace ingot {

struct EvalOptions {
    /// Computes all floating-point arithmetic in f64; types are promoted, quantised types stay.
    bool f64 = false;
    /// Called with every computed value (not inside bodies); may be empty. With f64 the values are
    /// those of promoted_to_f64(g).
    std::function<void(Value, const Tensor&)> observe;
    /// Gives the tensor that takes the place of a node's result, of the same type and shape; not
    /// inside bodies; may be empty. `observe` gets that tensor.
    std::function<Tensor(const Node&, Tensor)> replace;
};

/// Runs `g`. Inputs follow the order of g.inputs() and have exactly its dtypes (promoted ones with
/// f64). The inputs' shapes bind the symbols of input types; `symbols` gives the others. Errors:
/// InvalidArgument naming input, dimension, got and expected; run-time errors of ops.
std::vector<Tensor> evaluate(const Graph& g, std::span<const Tensor> inputs,
                             const EvalOptions& options = {}, Symbols symbols = {});

/// Binds the symbols of `dims` so that they evaluate to `shape`, and checks those already bound.
/// Single symbols are bound first; other expressions are checked. Errors as above; `what` names the
/// value.
void bind_symbols(const Dims& dims, const Shape& shape, Symbols& symbols, std::string_view what);

/// The graph with every f16, bf16 and f32 (fp8 and fp4 casts stay as roundings) replaced by f64.
Graph promoted_to_f64(const Graph& g);

} // namespace ingot
