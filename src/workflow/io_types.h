// SPDX-License-Identifier: Apache-2.0
// Other types for a model's inputs and outputs than it declares.
#pragma once

#include "workflow/io_formats.h"

#include <string_view>

namespace ingot {

/// The graph with the types that the two lists ask for, as trtexec spells them:
/// "fp16:chw,fp32:chw32+hwc", an entry for each input (output) in order, or one for all that it
/// fits; "" changes nothing. An entry is a type, formats that may be had (io_formats()) joined by
/// '+', or a type, ':' and formats. Converts by casts, which precision and simplification then
/// remove where they can: between fp32, fp16 and bf16, and between int32 and int64; of int8, uint8,
/// fp8 and bool, a tensor has to be one already. Errors: InvalidArgument with the entry.
Graph with_io_types(const Graph& g, std::string_view inputs, std::string_view outputs);

/// Adds the formats that the two lists allow, for a graph that with_io_types() gave its types. One
/// entry for all counts for those tensors that one of its formats fits. Errors: InvalidArgument
/// with the entry, where one for all fits none.
void allow_formats(const Graph& g, std::string_view inputs, std::string_view outputs,
                   AllowedFormats& formats);

} // namespace ingot
