// SPDX-License-Identifier: Apache-2.0
// Other types for a model's inputs and outputs than it declares.
#pragma once

#include "ir/graph.h"

#include <string_view>

namespace ingot {

/// The graph with the types that the two lists ask for, as trtexec spells them:
/// "fp16:chw,fp32:chw", an entry for each input (output) in order, or one for all that are floats;
/// "" changes nothing. Converts by casts, which precision and simplification then remove where they
/// can. Known: fp32, fp16, bf16, and for inputs and outputs that are integers int32, int64; the
/// layout, which may be left out, is chw (row major); an entry of a layout alone leaves the type as
/// it is. Errors: InvalidArgument with the entry;
/// Unsupported for layouts.
Graph with_io_types(const Graph& g, std::string_view inputs, std::string_view outputs);

} // namespace ingot
