// SPDX-License-Identifier: Apache-2.0
// Packed sequences of different lengths (kPACKED_NHD): the sequence and position of each token.
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

/// The tokens of a batch in one row: i64 values with one element per token or per sequence.
struct Tokens {
    Value sequence; // per token
    Value place;    // per token: its position in the sequence
    Value length;   // per sequence
    Value inside;   // bool: the token is no padding; invalid: there is no padding
};

/// Tokens of `count` packed tokens; sequence b spans starts[b] to starts[b + 1]. Tokens behind the
/// last sequence form one more sequence.
Tokens packed_tokens(Graph& g, const Dim& count, Value starts);
/// Tokens of `batch` padded sequences with `size` slots, of which the first `lengths` (one per
/// sequence; may be invalid) are tokens.
Tokens padded_tokens(Graph& g, const Dim& batch, const Dim& size, Value lengths);

/// Expands a value per sequence to a value per token.
Value of_tokens(Graph& g, const Tokens& t, Value of_sequences);

/// Bool [queries, keys]: both belong to one sequence, the key is no padding and, where causal, no
/// later than the query; with `right`, queries are aligned at the end of the sequence.
Value visible_tokens(Graph& g, const Tokens& queries, const Tokens& keys, bool causal, bool right);

} // namespace ingot::api
