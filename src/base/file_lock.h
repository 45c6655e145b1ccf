// SPDX-License-Identifier: Apache-2.0
// FolderLock: processes take turns to read, merge and replace a file of a folder.
#pragma once

#include <string>

namespace ingot {

/// Holds an advisory lock of a folder until destroyed. Waits at most `seconds`, then continues
/// without the lock, as it does where the folder cannot be locked: the lock saves work, not
/// correctness.
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
