// SPDX-License-Identifier: Apache-2.0
#include "emulator/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

namespace ingot::emulator {

namespace {

constexpr size_t reach = size_t{64} << 30; // 2^32 elements of 16 bytes
constexpr size_t room = size_t{512} << 30;
constexpr int inaccessible = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Space {
    std::mutex mutex;
    std::byte* begin = nullptr;     // of the room
    std::map<size_t, size_t> taken; // offset -> end, with the pages around
    size_t next = 0;                // where the search begins
};

Space& space() {
    static Space& s = *new Space; // outlives every emulated device
    return s;
}

/// The first offset not below `from` with `bytes` free ones; `room` for none.
size_t gap(const Space& s, size_t from, size_t bytes) {
    auto it = s.taken.upper_bound(from);
    size_t at = it == s.taken.begin() ? from : std::max(from, std::prev(it)->second);
    for (; it != s.taken.end() && it->first - at < bytes; ++it) {
        at = it->second;
    }
    return room - at >= bytes ? at : room;
}

} // namespace

std::byte* take_addresses(size_t bytes) {
    Space& s = space();
    std::lock_guard lock(s.mutex);
    if (s.begin == nullptr) {
        void* all = mmap(nullptr, room + 2 * reach, PROT_NONE, inaccessible, -1, 0);
        if (all == MAP_FAILED) {
            return nullptr;
        }
        s.begin = static_cast<std::byte*>(all) + reach;
    }
    if (bytes > room - 2 * page) {
        return nullptr;
    }
    const size_t all = bytes + 2 * page;
    size_t at = gap(s, s.next, all);
    at = at == room ? gap(s, 0, all) : at;
    if (at == room) {
        return nullptr;
    }
    s.taken[at] = at + all;
    s.next = at + all; // freed addresses rest: late accesses fault
    return s.begin + at + page;
}

void give_back(std::byte* from, size_t bytes) noexcept {
    if (from == nullptr ||
        mmap(from, bytes, PROT_NONE, inaccessible | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return; // what is still accessible is not given again
    }
    Space& s = space();
    std::lock_guard lock(s.mutex);
    s.taken.erase(static_cast<size_t>(from - page - s.begin));
}

} // namespace ingot::emulator
