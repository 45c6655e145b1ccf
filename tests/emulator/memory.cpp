// SPDX-License-Identifier: Apache-2.0
#include "emulator/memory.h"

#include "base/error.h"
#include "emulator/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace ingot::emulator {

namespace {

constexpr size_t red_zone = 256; // at most, in front and behind
constexpr auto red = std::byte{0xA5};

} // namespace

Memory::~Memory() {
    for (auto& [base, b] : blocks_) {
        give_back(b.pages, b.page_bytes);
    }
}

std::byte* Memory::allocate(int64_t bytes) {
    std::lock_guard lock(mutex_);
    require(bytes >= 0 && bytes <= total_ - used_, ErrorCode::OutOfMemory,
            "the emulated device cannot allocate ", bytes, " bytes: ", total_ - used_, " of ",
            total_, " are free");
    size_t room = (std::max(static_cast<size_t>(bytes), size_t{1}) + alignment_ - 1) / alignment_ *
                  alignment_;
    Block b;
    b.bytes = bytes;
    b.page_bytes = (room + page - 1) / page * page;
    b.pages = take_addresses(b.page_bytes);
    require(b.pages != nullptr && mprotect(b.pages, b.page_bytes, PROT_READ | PROT_WRITE) == 0,
            ErrorCode::OutOfMemory, "the host cannot allocate ", bytes, " bytes");
    std::byte* base = b.pages + (b.page_bytes - room);
    std::memset(b.pages, static_cast<int>(red), b.page_bytes);
    std::memset(base, poison, static_cast<size_t>(bytes));
    used_ += bytes;
    blocks_[base] = b;
    return base;
}

std::string Memory::damage(std::byte* base, const Block& b) {
    auto is_red = [](std::byte x) { return x == red; };
    std::byte* front = std::max(b.pages, base - red_zone);
    std::byte* end = base + b.bytes;
    std::byte* last = b.pages + b.page_bytes;
    if (std::byte* bad = std::find_if_not(front, base, is_red); bad != base) {
        return str("a write ", base - bad, " bytes before an allocation of ", b.bytes, " bytes");
    }
    if (std::byte* bad = std::find_if_not(end, last, is_red); bad != last) {
        return str("a write ", bad - end, " bytes behind the end of an allocation of ", b.bytes,
                   " bytes");
    }
    return {};
}

std::string Memory::release(std::byte* memory) {
    if (memory == nullptr) {
        return {};
    }
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(memory);
    if (it == blocks_.end()) {
        return "release of an address that was not allocated";
    }
    std::string problem = it->second.held ? "" : damage(memory, it->second);
    give_back(it->second.pages, it->second.page_bytes);
    used_ -= it->second.bytes;
    blocks_.erase(it);
    return problem;
}

std::string Memory::check() const {
    std::lock_guard lock(mutex_);
    for (const auto& [base, b] : blocks_) {
        if (std::string problem = damage(base, b); !problem.empty()) {
            return problem;
        }
    }
    return {};
}

void Memory::require_inside(const std::byte* from, size_t bytes, const char* what) const {
    std::lock_guard lock(mutex_);
    auto it = blocks_.upper_bound(const_cast<std::byte*>(from));
    bool inside = it != blocks_.begin();
    if (inside) {
        --it;
        auto at = static_cast<size_t>(from - it->first);
        inside = at + bytes <= static_cast<size_t>(it->second.bytes);
    }
    require(inside || bytes == 0, ErrorCode::Device, "device memory: ", what, " of ", bytes,
            " bytes is not inside one allocation");
}

int64_t Memory::left(const void* address) const {
    std::lock_guard lock(mutex_);
    auto* a = static_cast<std::byte*>(const_cast<void*>(address));
    auto it = blocks_.upper_bound(a);
    return it == blocks_.begin() ? 0 : std::max<int64_t>((--it)->first + it->second.bytes - a, 0);
}

std::string Memory::describe(const void* address) const {
    std::lock_guard lock(mutex_);
    auto* a = static_cast<std::byte*>(const_cast<void*>(address));
    for (const auto& [base, b] : blocks_) {
        if (a >= base && a < base + b.bytes) {
            return str(b.held ? "before grid_wait, " : "", "at byte ", a - base,
                       " of an allocation of ", b.bytes, " bytes");
        }
        if (a >= b.pages - page && a < base) {
            return str(base - a, " bytes before an allocation of ", b.bytes, " bytes");
        }
        if (a >= base && a < b.pages + b.page_bytes + page) {
            return str(a - (base + b.bytes), " bytes behind the end of an allocation of ", b.bytes,
                       " bytes");
        }
    }
    return address == nullptr
               ? "at address 0 or at one that is no address"
               : str("at address ", reinterpret_cast<uintptr_t>(address), ", near no allocation");
}

void Memory::hold_until_wait(std::byte* memory) {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(memory);
    require(it != blocks_.end(), ErrorCode::InvalidArgument, "no allocation starts there");
    it->second.held = true;
}

bool Memory::any_held() const {
    std::lock_guard lock(mutex_);
    return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& b) { return b.second.held; });
}

void Memory::protect_held(bool closed) {
    std::lock_guard lock(mutex_);
    for (auto& [base, b] : blocks_) {
        if (b.held) {
            mprotect(b.pages, b.page_bytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
        }
    }
}

int64_t Memory::used() const {
    std::lock_guard lock(mutex_);
    return used_;
}

} // namespace ingot::emulator
