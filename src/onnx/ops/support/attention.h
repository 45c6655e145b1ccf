// SPDX-License-Identifier: Apache-2.0
// Shared by the attention operators of ONNX and of ONNX Runtime: heads, masks, rotation.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// x [B,S,heads*D] -> [B,heads,S,D].
Value split_heads(ingot::Graph& g, Value x, int64_t heads);
/// x [B,H,S,D] -> [B,S,H*D].
Value merge_heads(ingot::Graph& g, Value x);

/// Both may be invalid. `allowed` is bool (false hides), `bias` a float added to the scores; both
/// broadcast to [B,H,S,T].
struct Masks {
    Value allowed;
    Value bias;
};
/// Also hides the positions where `allowed` is false.
void allow_only(ingot::Graph& g, Masks& m, Value allowed);
/// Adds a key mask in one of com.microsoft's forms: the number of keys [B], ends and starts [2B],
/// or 0 for a hidden key [B,T] or [B,S,T]. Adds attribute mask_filter_value to the scores of hidden
/// keys.
void add_key_mask(const NodeContext& c, Masks& m, Value mask, const Dim& batch, const Dim& keys);
/// Adds a float mask.
void add_bias(ingot::Graph& g, Masks& m, Value bias);
/// One mask for ops::attention; invalid when there is none.
Value combined(ingot::Graph& g, const Masks& m);

/// i64 [1 or B,1,S,1]: the position of each query among the keys, its own number plus `offset`;
/// offset is a scalar or [B].
Value query_positions(ingot::Graph& g, const Dim& queries, Value offset);
/// i64 [1,1,1,T]
Value key_positions(ingot::Graph& g, const Dim& keys);
/// a <= b
Value not_above(ingot::Graph& g, Value a, Value b);

/// Rotates the first `rotated` elements of the last axis of x [B,H,S,D] (0: all). cos and sin are
/// [B or 1, S, rotated/2].
Value rotate_heads(ingot::Graph& g, Value x, Value cos, Value sin, int64_t rotated,
                   bool interleaved);

/// cache [B,H,T,D] with `now` [B,H,S,D] in the place of S keys or values; those of each sequence
/// begin at `start`, i64 [B].
Value written_at(ingot::Graph& g, Value cache, Value now, Value start);

/// The scores of all keys before the softmax, [B,H,S,T] in q's dtype: q [B,H,S,D] on k [B,H,T,D],
/// times `scale`, plus `bias` where valid.
Value biased_scores(ingot::Graph& g, Value q, Value k, double scale, Value bias);

/// The factor of the scores: `given`, or 1 / sqrt(head size) when it is 0. For a head size known
/// only at run time, multiplies q by it instead.
double attention_scale(ingot::Graph& g, double given, Value& q);

} // namespace ingot::onnx
