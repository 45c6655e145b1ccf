// SPDX-License-Identifier: Apache-2.0
// Which formats the inputs and outputs of an engine get, of those that its caller takes.
#pragma once

#include "engine/io_format.h"

#include <map>
#include <string>
#include <vector>

namespace ingot {

/// By the name of the tensor; one that is not named lies row major.
struct AllowedFormats {
    using Named = std::map<std::string, std::vector<const IoFormat*>, std::less<>>;
    Named inputs;
    Named outputs;
    /// Nothing may be reformatted at the engine's edges.
    bool direct = false;
};

/// Row major where it is allowed, else the earliest of io_formats() that is allowed and fits the
/// tensor. Errors: InvalidArgument naming tensor, type and formats where none fits, with those that
/// would, and where `direct` rules out the one that does.
IoFormats choose_formats(const Graph& g, const AllowedFormats& allowed);

} // namespace ingot
