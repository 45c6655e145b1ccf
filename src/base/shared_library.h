// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are opened at run time.
#pragma once

#include <string>

namespace ingot {

/// The folder of the program or shared library that contains this code; "" when the system does not
/// tell.
std::string own_folder();
/// Overrides own_folder(); "" restores the system's answer.
void set_own_folder(std::string folder);

/// Whether both addresses lie in the same shared library, or both in the program.
bool same_library(const void* a, const void* b);

/// A shared library that stays open until the process ends.
class SharedLibrary {
public:
    /// Opens a path, or a bare name that the loader searches for. Its symbols stay private to it.
    /// On failure nothing is open, and `problem` says why.
    static SharedLibrary open(const std::string& path, std::string& problem);
    explicit operator bool() const { return handle_ != nullptr; }
    /// Null when there is no such symbol.
    void* symbol(const char* name) const;

private:
    void* handle_ = nullptr;
};

} // namespace ingot
