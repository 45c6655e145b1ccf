// SPDX-License-Identifier: Apache-2.0
// A private copy of a file's bytes, for parsers: the bytes of a MappedFile may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

/// Copies a whole regular file. Errors (Io): as MappedFile::open, and when it is larger than the
/// limit.
std::vector<std::byte> read_file(const std::string& path, uint64_t limit_bytes);

} // namespace ingot
