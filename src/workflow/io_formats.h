// SPDX-License-Identifier: Apache-2.0
// Chooses the formats of an engine's inputs and outputs among those that the caller allows.
#pragma once

#include "engine/io_format.h"

#include <map>
#include <string>
#include <vector>

namespace ingot {

/// Keyed by tensor name; tensors without an entry are row major.
struct AllowedFormats {
    using Named = std::map<std::string, std::vector<const IoFormat*>, std::less<>>;
    Named inputs;
    Named outputs;
    /// Forbids reformatting at the engine's inputs and outputs.
    bool direct = false;
};

/// Row major when allowed, else the earliest of io_formats() that is allowed and fits the tensor.
/// Errors: InvalidArgument naming tensor, type and formats when none fits, with those that would,
/// and when `direct` rules out the one that does.
IoFormats choose_formats(const Graph& g, const AllowedFormats& allowed);

} // namespace ingot
