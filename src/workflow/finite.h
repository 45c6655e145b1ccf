// SPDX-License-Identifier: Apache-2.0
// Finds the first layer whose results hold infinity or NaN.
#pragma once

#include "engine/engine.h"

#include <span>
#include <string>
#include <vector>

namespace ingot {

struct NotFinite {
    std::string layer; // the node, or "input 'x'"
    std::string op;    // of the node; "" for an input
    std::string value; // "nan", "inf" or "-inf": the first such element
    Shape position;    // of that element
    Type type;
    int64_t count = 0;   // elements that are not finite
    bool arises = false; // all that the node reads is finite
    /// "'log' (map) gives -inf at [0,3] of f32[1,8], 2 elements are not finite; what it reads is
    /// finite".
    std::string text() const;
};

/// The results of a run that looks at every float value of the graph before it is fused. The first
/// entry is the first layer that is not finite; another one follows where the first NaN comes
/// later. Bodies of If and Loop count as one layer. Inputs as Context::run takes them. Errors:
/// those of Context.
std::vector<NotFinite> find_not_finite(const Engine& engine, const Backend& backend,
                                       const CompileOptions& options,
                                       std::span<const Tensor> inputs);

} // namespace ingot
