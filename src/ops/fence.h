// SPDX-License-Identifier: Apache-2.0
// fence: where the types of a part of a graph are held. Passes do not see through it; once
// `precision` has given everything its type, `drop_fences` takes it away.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// x -> x. What reads an opening fence, up to closing ones, keeps computing in f32 when the rest of
/// the graph is converted to a narrower type; what a closing fence gives is kept in f32.
struct Fence {
    bool opens = false;
    static void fields(auto& s, auto&& f) { f("opens", s.opens); }
};
Value fence(Graph& g, Value x, bool opens);

extern const OpDef fence_def;

} // namespace ingot::ops
