// SPDX-License-Identifier: Apache-2.0
// Mapped files whose pages may go away: a file that is truncated, a disk that fails. The kernel
// then sends SIGBUS to whoever reads. A handler puts zeros there instead, and notes it; it is set
// when the first file is mapped, and hands on the signals that are not about mapped files. A
// program that sets another one later, which does not hand on, is ended by the signal. Thread safe.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ingot {

/// Watches whole pages that were mapped; unless too many maps are watched already.
void guard_pages(std::span<const std::byte> map, std::string_view path);
/// Before the map goes.
void release_pages(std::span<const std::byte> map);
/// Whether a page of any file could not be had so far: cheap, so that check_pages() need not be
/// called otherwise.
bool pages_were_lost();
/// To be called once `bytes` have been used. Errors (Io): they lie in a mapped file, pages of which
/// could not be had, so that zeros may have been read.
void check_pages(std::span<const std::byte> bytes);

} // namespace ingot
