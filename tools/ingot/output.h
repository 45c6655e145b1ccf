// SPDX-License-Identifier: Apache-2.0
// The command's standard output: without control characters, and not lost in silence.
#pragma once

namespace ingot::tool {

/// From here on control characters in what is printed to stdout, which models and file names may
/// hold, are written as \xNN; line ends and tabs stay.
void filter_stdout();
/// Writes out what is left. False, and a message, when anything could not be written.
bool end_stdout();

} // namespace ingot::tool
