// SPDX-License-Identifier: Apache-2.0
// FolderLock: processes take turns to read, merge and replace a file of a folder. KeyLock: one of
// several processes does a piece of work, the others wait for its result.
#pragma once

#include <cstdint>
#include <functional>
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

/// Holds an advisory lock of one key until destroyed, or until the process ends, however it ends.
/// All keys share the file `path`, which is created and stays empty. Threads of one process exclude
/// each other too. Waits until `gives_up` returns true, and continues without the lock then, as it
/// does where the file cannot be made or locked: the lock saves work, not correctness.
class KeyLock {
public:
    KeyLock(const std::string& path, uint64_t key, const std::function<bool()>& gives_up) noexcept;
    ~KeyLock();
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;
    bool held() const { return descriptor_ >= 0; }

private:
    int descriptor_ = -1;
};

} // namespace ingot
