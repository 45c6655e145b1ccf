// SPDX-License-Identifier: Apache-2.0
// Folders and files that only this user can have written: their contents are executed.
#pragma once

#include <string>

namespace ingot {

/// Why `path` must not be trusted, and what to do: it belongs to a user other than this one or
/// root, others may write to it, or it is neither a folder nor a file. "" when it may be trusted or
/// does not exist. Symbolic links are followed.
std::string why_untrusted(const std::string& path);
/// Makes a folder that only this user can access, and its parent folders. An existing folder is
/// left as it is. Failure is ignored.
void make_private_folder(const std::string& path) noexcept;
/// Removes the write permission of others, whatever the umask.
void keep_others_from_writing(const std::string& path) noexcept;

} // namespace ingot
