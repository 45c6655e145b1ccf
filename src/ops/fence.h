// SPDX-License-Identifier: Apache-2.0
// fence: where the types of a part of a graph are held. Passes do not see through it; once
// `precision` has given everything its type, `drop_fences` takes it away.
#pragma once

#include "ops/ops.h"

#include <map>

namespace ingot::ops {

/// x -> x. What reads an opening fence, up to closing ones, keeps computing in f32 when the rest of
/// the graph is converted to a narrower type; what a closing fence gives is kept in f32.
struct Fence {
    bool opens = false;
    static void fields(auto& s, auto&& f) { f("opens", s.opens); }
};
Value fence(Graph& g, Value x, bool opens);

/// Puts parts of one graph between fences. Neighbours share one pair, so that patterns of several
/// layers are found there; constants and what is not f32 stand outside.
class Fences {
public:
    /// What a part reads in place of v.
    Value enter(Graph& g, Value v);
    /// What others read in place of a result of a part.
    Value leave(Graph& g, Value v);

private:
    std::map<uint32_t, Value> entered_; // by the value outside
    std::map<uint32_t, Value> left_;    // what is behind a closing fence, by its result
};

extern const OpDef fence_def;

} // namespace ingot::ops
