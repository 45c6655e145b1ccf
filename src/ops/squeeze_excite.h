// SPDX-License-Identifier: Apache-2.0
// squeeze_excite: scales each channel by a gate that two small layers compute from all channel
// means.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// (x [N,C,spatial...], w1 [S,C], b1 [S], w2 [C,S], b2 [C]) -> x * gate(w2 act(w1 m + b1) + b2),
/// where m are the means of x over its spatial axes; all of one float type. `act` and `gate` are
/// functions of one f32; with f64 they compute in f64.
struct SqueezeExcite {
    Expr act;
    Expr gate;
    static void fields(auto& s, auto&& f) { f("act", s.act), f("gate", s.gate); }
};
/// `in` are the five inputs in that order.
Value squeeze_excite(Graph& g, SqueezeExcite a, std::span<const Value> in);

extern const OpDef squeeze_excite_def;

} // namespace ingot::ops
