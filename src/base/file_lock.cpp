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

} // namespace ingot
