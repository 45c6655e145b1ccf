// SPDX-License-Identifier: Apache-2.0
// What If, Loop and Scan share: bodies whose results have sizes that can be named outside.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// Symbols that nodes of g define, plus `more`: those that the outside of a body cannot name.
std::set<std::string, std::less<>> inner_symbols(const ingot::Graph& g, const Dims& more);
/// v with each size that mentions one of `inner` replaced by a fresh symbol; adds those to
/// `symbols`.
Value with_outer_sizes(ingot::Graph& g, Value v, const std::set<std::string, std::less<>>& inner,
                       Dims& symbols);
/// Adds a body's inputs like those of `from` to `to`, with names and what is known of contents.
Values add_inputs_like(ingot::Graph& to, const ingot::Graph& from, std::span<const Value> values);
/// Is this bool known to be true?
bool known_true(const ingot::Graph& g, Value v);

} // namespace ingot::onnx
