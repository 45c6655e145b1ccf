// SPDX-License-Identifier: Apache-2.0
// A file's bytes as they were at one time, for parsers: those of a MappedFile may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

/// A copy of the whole of a regular file. Errors (Io): as MappedFile::open, and when it is larger
/// than the limit.
std::vector<std::byte> read_file(const std::string& path, uint64_t limit_bytes);

} // namespace ingot
