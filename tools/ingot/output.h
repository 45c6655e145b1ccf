// SPDX-License-Identifier: Apache-2.0
// The command's standard output: without control characters, and not lost in silence.
#pragma once

namespace ingot::tool {

/// From here on stdout gets control characters, which models and file names may hold, as \xNN;
/// line ends and tabs stay.
void filter_stdout();
/// From here on each line is written when it ends, so that none is lost with a process that dies.
void print_lines_at_once();
/// Flushes stdout. False, and a message, when anything could not be written.
bool end_stdout();

} // namespace ingot::tool
