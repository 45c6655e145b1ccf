// SPDX-License-Identifier: Apache-2.0
// Linear attention: a recurrence over the sequence, one step an iteration of a loop. A step does
//   S = factor S + (beta (v - factor S k)) k';   y = scale S q
// on the state S [V,K] of each head, less the terms that the update rule leaves out.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

struct UpdateRule {
    bool gated = false; // the state decays
    bool delta = false; // the part of v that the state already gives is left out
    double scale = 1;
    bool keep_deltas = false;
};
/// The terms named by attribute update_rule.
UpdateRule update_rule(const NodeContext& c);

/// In the dtype of the recurrence. Several states may share one head of k, or one of q; several
/// heads of q may share one state.
struct LinearAttentionInputs {
    Value state;  // [B,heads,V,K]
    Value q;      // [T,B,h,K]
    Value k;      // [T,B,h,K]
    Value v;      // [T,B,heads,V]
    Value factor; // [T,B,heads,K or 1] for `gated`
    Value beta;   // [T,B,heads or 1,1] for `delta`
};
/// The last state, the results [T,B,most heads,V], and with `keep_deltas` what k multiplies in each
/// step, [T,B,heads,V].
Values run_linear_attention(ingot::Graph& g, const UpdateRule& r, const LinearAttentionInputs& in);

} // namespace ingot::onnx
