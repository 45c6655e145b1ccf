// SPDX-License-Identifier: Apache-2.0
// Shared by If, Loop and Scan: bodies whose result sizes can be named outside.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// Symbols defined by nodes of g, plus `more`: the outer graph cannot name them.
std::set<std::string, std::less<>> inner_symbols(const ingot::Graph& g, const Dims& more);
/// v with each size that mentions one of `inner` replaced by a fresh symbol, which is added to
/// `symbols`.
Value with_outer_sizes(ingot::Graph& g, Value v, const std::set<std::string, std::less<>>& inner,
                       Dims& symbols);
/// Adds inputs like those of the body `from` to `to`, with names and known contents.
Values add_inputs_like(ingot::Graph& to, const ingot::Graph& from, std::span<const Value> values);
/// Whether this bool is known to be true.
bool known_true(const ingot::Graph& g, Value v);

} // namespace ingot::onnx
