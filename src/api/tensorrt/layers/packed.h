// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths one after another (kPACKED_NHD): where each token belongs.
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

/// The tokens of a batch in one row: i64 values of one element for each token or each sequence.
struct Tokens {
    Value sequence; // of each token
    Value place;    // of each token in its sequence
    Value length;   // of each sequence
    Value inside;   // bool: the token is no padding; invalid: none is
};

/// Of `count` tokens, of sequences that begin at starts[b] and end at starts[b + 1]. Tokens behind
/// the last sequence are in one of their own.
Tokens packed_tokens(Graph& g, const Dim& count, Value starts);
/// Of `batch` sequences of `size` places, of which `lengths` (one for each sequence; may be
/// invalid) are tokens.
Tokens padded_tokens(Graph& g, const Dim& batch, const Dim& size, Value lengths);

/// A value of each sequence for each token.
Value of_tokens(Graph& g, const Tokens& t, Value of_sequences);

/// Bool [queries, keys]: both are of one sequence, the key is no padding and, where causal, no
/// later than the query; `right`: than the query counted from the end of its sequence.
Value visible_tokens(Graph& g, const Tokens& queries, const Tokens& keys, bool causal, bool right);

} // namespace ingot::api
