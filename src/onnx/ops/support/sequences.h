// SPDX-License-Identifier: Apache-2.0
// Tokens of several sequences one after the other; the offsets, cu_seqlens [B+1], say where each
// sequence begins, and where the last one ends.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// All i64.
struct Sequences {
    Value begins;   // [B]
    Value lengths;  // [B]
    Value sequence; // [tokens]: the sequence of each token
    Value place;    // [tokens]: its place in its sequence
};
/// Input i as offsets. A token beyond the last offset ends the run.
Sequences sequences_of(const NodeContext& c, int i, const Dim& tokens);

/// Rows of tokens [tokens,...], behind rows that each sequence carries from before, [B,P,...].
struct CarriedRows {
    Value rows; // [B*P + tokens,...]
    Dim batch;
    Dim carried; // P
};
CarriedRows carried_rows(ingot::Graph& g, Value before, Value tokens);
/// The rows of the tokens at `place` of a sequence; place -1 is its last carried row. `sequence`
/// and `place` broadcast to the leading axes of the result.
Value rows_at(ingot::Graph& g, const CarriedRows& r, const Sequences& s, Value sequence,
              Value place);
/// i64 [B,1,..]: the number of each sequence, with `rank` axes.
Value each_sequence(ingot::Graph& g, const Sequences& s, int64_t rank);
/// The rows that each sequence carries on: [B,P,...].
Value carried_on(ingot::Graph& g, const CarriedRows& r, const Sequences& s);
/// Attribute state_update_capacity, given together with input `counts`, [B].
int64_t update_capacity(const NodeContext& c, int counts, int output);
/// i64 [B]: `counts`, at most the lengths.
Value updates_kept(ingot::Graph& g, const Sequences& s, Value counts);

} // namespace ingot::onnx
