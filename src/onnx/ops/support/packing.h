// SPDX-License-Identifier: Apache-2.0
// Sequences of one batch without their padding: rows of all tokens one after the other. As
// com.microsoft has them, token_offset [B,S] lists the places in [B,S] of all tokens, then those of
// the padding.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// i64 [tokens]: the places of the tokens.
Value token_places(ingot::Graph& g, Value token_offset, const Dim& tokens);
/// x [tokens,D] -> [B,S,D] with zeros for padding.
Value with_padding(ingot::Graph& g, Value x, Value token_offset);
/// x [B,S,D] -> [tokens,D].
Value without_padding(ingot::Graph& g, Value x, Value token_offset, const Dim& tokens);

} // namespace ingot::onnx
