// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/buffer.h"

#include <algorithm>
#include <cstdlib>

namespace ingot::triton {

void Buffer::Free::operator()(std::byte* p) const {
    if (device != nullptr && pinned) {
        device->gpu().release_staging(p);
    } else if (device != nullptr) {
        device->deallocateAsync(p, nullptr);
    } else {
        std::free(p); // NOLINT(*-no-malloc)
    }
}

std::byte* Buffer::reserve(size_t bytes) {
    constexpr size_t alignment = 256;
    if (bytes > bytes_ || memory_ == nullptr) {
        size_t rounded = (std::max(bytes, alignment) + alignment - 1) / alignment * alignment;
        memory_.reset();
        bytes_ = 0;
        const Free& kind = memory_.get_deleter();
        memory_.reset(
            static_cast<std::byte*>(kind.device == nullptr ? std::aligned_alloc(alignment, rounded)
                                    : kind.pinned ? kind.device->gpu().allocate_staging(rounded)
                                                  : kind.device->allocate_or_throw(rounded)));
        require(memory_ != nullptr, ErrorCode::OutOfMemory, "no host memory for ", rounded,
                " bytes");
        bytes_ = rounded;
    }
    return memory_.get();
}

} // namespace ingot::triton
