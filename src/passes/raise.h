// SPDX-License-Identifier: Apache-2.0
// Shared by the raising passes: patterns of sums and means over axes, and types of raised nodes.
#pragma once

#include "passes/match.h"
#include "passes/rules.h"

namespace ingot::passes {

/// A reduction that keeps its rank: reshape(reduce(x)), or the reduce itself.
struct Reduction {
    Value x;
    std::vector<int64_t> axes;
};
/// The leaf `t` as a reduction by `fn` whose result broadcasts against its operand.
std::optional<Reduction> reduction(const View& v, Term t, std::string_view fn);
/// The term as `coefficient` times the mean of a value: sum / count.
std::optional<Reduction> mean(const View& v, Term t, double coefficient = 1);
/// The first of the axes, when they are the trailing ones; else nullopt.
std::optional<int64_t> trailing(const std::vector<int64_t>& axes, int64_t rank);
/// The more precise of two float types.
DType wider(DType a, DType b);
/// Whether every element of the tensor is `v`.
bool all_are(const Tensor* t, double v);
/// A factor or offset that varies along the last `axes` axes at most, without leading axes.
std::optional<Value> over_last(Graph& g, Value v, int64_t axes);

} // namespace ingot::passes
