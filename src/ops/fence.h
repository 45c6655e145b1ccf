// SPDX-License-Identifier: Apache-2.0
// fence: marks a part of a graph whose types are fixed. Passes do not look through fences;
// `precision` assigns all types, then `drop_fences` removes the fences.
#pragma once

#include "ops/ops.h"

#include <map>

namespace ingot::ops {

/// x -> x. Nodes between an opening and a closing fence keep computing in f32 when the rest of the
/// graph is converted to a narrower type; the result of a closing fence stays f32.
struct Fence {
    bool opens = false;
    static void fields(auto& s, auto&& f) { f("opens", s.opens); }
};
Value fence(Graph& g, Value x, bool opens);

/// Puts parts of one graph between fences. Adjacent parts share one pair, so that patterns across
/// layers still match; constants and values that are not f32 stay outside.
class Fences {
public:
    /// The value that a part reads in place of v.
    Value enter(Graph& g, Value v);
    /// The value that others read in place of a part's result.
    Value leave(Graph& g, Value v);

private:
    std::map<uint32_t, Value> entered_; // by the value outside
    std::map<uint32_t, Value> left_;    // the value behind a closing fence, by the fence's result
};

extern const OpDef fence_def;

} // namespace ingot::ops
