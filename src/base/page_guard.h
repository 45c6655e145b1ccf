// SPDX-License-Identifier: Apache-2.0
// Guards mapped files whose pages may disappear: a file is truncated, or a disk fails. The kernel
// then sends SIGBUS to the reader. Our handler maps zeros there and records the loss. It is
// installed with the first mapped file and forwards other SIGBUS signals. If the program later
// installs a handler that does not forward, the signal ends the program. Thread safe.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ingot {

/// Guards whole mapped pages; does nothing when too many maps are guarded already.
void guard_pages(std::span<const std::byte> map, std::string_view path);
/// Call before unmapping.
void release_pages(std::span<const std::byte> map);
/// Whether all of `bytes` lie in one map that is guarded.
bool are_guarded(std::span<const std::byte> bytes);
/// Whether a page of any file has been lost so far. Cheap: call check_pages() only when true.
bool pages_were_lost();
/// Call after using `bytes`. Errors (Io): they lie in a mapped file that has lost pages, so that
/// zeros may have been read.
void check_pages(std::span<const std::byte> bytes);

} // namespace ingot
