// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace ingot {

FolderLock::FolderLock(const std::string& folder, double seconds) noexcept
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr std::chrono::milliseconds pause{2};
    auto start = std::chrono::steady_clock::now();
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited.count() > seconds) {
            ::close(descriptor_);
            descriptor_ = -1;
            return;
        }
        std::this_thread::sleep_for(pause);
    }
}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) {
        ::close(descriptor_); // also unlocks
    }
}

// A lock of one byte, whose position is the key. It belongs to the open file, not to the process,
// so that closing another descriptor of the file does not release it.
KeyLock::KeyLock(const std::string& path, uint64_t key,
                 const std::function<bool()>& gives_up) noexcept
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    constexpr std::chrono::milliseconds pause{2};
    struct flock byte = {};
    byte.l_type = F_WRLCK;
    byte.l_whence = SEEK_SET;
    byte.l_start = static_cast<off_t>(key >> 2U); // no negative position, none at the very end
    byte.l_len = 1;
    while (descriptor_ >= 0 && ::fcntl(descriptor_, F_OFD_SETLK, &byte) != 0) {
        bool taken = errno == EAGAIN || errno == EACCES || errno == EINTR;
        if (!taken || gives_up()) {
            ::close(descriptor_);
            descriptor_ = -1;
            return;
        }
        std::this_thread::sleep_for(pause);
    }
}

KeyLock::~KeyLock() {
    if (descriptor_ >= 0) {
        ::close(descriptor_); // also unlocks
    }
}

} // namespace ingot
