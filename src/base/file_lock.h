// SPDX-License-Identifier: Apache-2.0
// FolderLock: processes that read, merge and replace a file of a folder take turns.
#pragma once

#include <string>

namespace ingot {

/// Holds an advisory lock of a folder until it is destroyed. Waits for at most `seconds`; then, and
/// where the folder cannot be locked, goes on without: the lock saves work, not correctness.
class FolderLock {
public:
    explicit FolderLock(const std::string& folder, double seconds = 5) noexcept;
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    bool held() const { return descriptor_ >= 0; }

private:
    int descriptor_ = -1;
};

} // namespace ingot
