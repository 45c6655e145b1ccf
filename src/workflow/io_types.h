// SPDX-License-Identifier: Apache-2.0
// Types and formats of a model's inputs and outputs other than those it declares.
#pragma once

#include "workflow/io_formats.h"

#include <string_view>

namespace ingot {

/// The graph with the types in the two lists, in trtexec's spelling: "fp16:chw,fp32:chw32+hwc", an
/// entry for each input (output) in order, or a single one for every input (output) that it fits;
/// "" changes nothing. An entry is a type, allowed formats (io_formats()) joined by '+', or a type,
/// ':' and formats. Inserts casts, which precision and simplification then remove where possible:
/// between fp32, fp16 and bf16, and between int32 and int64; a tensor with an entry of int8, uint8,
/// fp8 or bool must already have that type. Errors: InvalidArgument with the entry.
Graph with_io_types(const Graph& g, std::string_view inputs, std::string_view outputs);

/// Adds the formats that the two lists allow, for a graph that with_io_types() returned. A single
/// entry for all applies to the tensors that one of its formats fits. Errors: InvalidArgument with
/// the entry, when a single entry fits no tensor.
void allow_formats(const Graph& g, std::string_view inputs, std::string_view outputs,
                   AllowedFormats& formats);

} // namespace ingot
