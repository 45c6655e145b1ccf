// SPDX-License-Identifier: Apache-2.0
// Folders and files that only this user can have written: what is read from them is run.
#pragma once

#include <string>

namespace ingot {

/// Why what lies at `path` may be somebody else's, and what to do: it belongs to another user than
/// this one or the superuser, or others may write it, or it is neither a folder nor a file. "" when
/// it may be trusted, and where there is nothing. A symbolic link counts as what it leads to.
std::string why_untrusted(const std::string& path);
/// Makes a folder that nobody else can look into, and the folders above it. One that is there stays
/// as it is. Where it cannot be made nothing happens.
void make_private_folder(const std::string& path) noexcept;
/// Others may not write it any more, whatever the umask says.
void keep_others_from_writing(const std::string& path) noexcept;

} // namespace ingot
