// SPDX-License-Identifier: Apache-2.0
// Values that f16 cannot hold: found by running sample inputs in f32, or in a calibration cache.
#pragma once

#include "ir/graph.h"
#include "passes/precision.h"
#include "workflow/quantization/calibration_cache.h"

#include <set>
#include <string>
#include <vector>

namespace ingot {

/// The largest number of f16.
inline constexpr double largest_f16 = 65504;

struct Overflow {
    uint32_t value = 0;   // of the graph before the pass `precision`
    std::string layer;    // the node that makes it, else "input 'x'" or "a constant of 'node'"
    double magnitude = 0; // the largest finite one that was seen
};
/// "'Mul_3' reaches 1.2e+11, input 'x' reaches 7e+04 and 2 more".
std::string listed(std::span<const Overflow> overflows);
/// "fp16: layers keep f32 where values pass 65504, ..", with the list.
std::string overflow_warning(std::span<const Overflow> overflows);

/// Values of a graph as far as they are known. Without either, nothing overflows.
struct ValueRanges {
    /// Inputs of runs, each in the order of the graph's.
    std::vector<std::vector<Tensor>> samples;
    /// Thresholds by name; those of min-max calibration are the true ranges.
    CalibrationCache cache;
};

/// Those of `values` whose finite numbers exceed f16, in graph order. Numbers below its range are
/// allowed where a softmax alone reads them: masks, whose exponential is 0 either way. Runs the
/// graph on the CPU. Errors: as Context::run.
std::vector<Overflow> overflows(const Graph& g, std::span<const Value> values,
                                const ValueRanges& ranges);

/// Those of `values` that these layers make, as Overflow::layer names them.
std::vector<Overflow> named_overflows(const Graph& g, std::span<const Value> values,
                                      const std::set<std::string>& layers);

} // namespace ingot
