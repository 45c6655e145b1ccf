// SPDX-License-Identifier: Apache-2.0
// operator new of this library and of oneDNN. oneDNN ends the process when one of its containers
// finds no memory, since many of its functions cannot throw; so a reserve serves it then. It gets
// to a point where it reports a lack of memory, or finishes, and the caller's next allocation
// fails.
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// Untouched pages cost no memory. A primitive's description takes less than 1 MiB.
constexpr size_t reserve_bytes = size_t{8} << 20;
constexpr size_t header_bytes = 16; // holds a block's class, and keeps its alignment
constexpr size_t smallest_class = 6;
constexpr size_t class_count = 24;

class Reserve {
public:
    /// At least n bytes, or null. Blocks are powers of two.
    void* take(size_t n) noexcept {
        auto c = static_cast<size_t>(std::bit_width(n + header_bytes - 1));
        c = c < smallest_class ? smallest_class : c;
        if (n >= reserve_bytes || c >= class_count) {
            return nullptr;
        }
        lock();
        std::byte* block = free_[c];
        if (block != nullptr) {
            free_[c] = *next_of(block);
        } else if ((size_t{1} << c) <= reserve_bytes - used_) {
            block = bytes_.data() + used_;
            used_ += size_t{1} << c;
        }
        unlock();
        if (block == nullptr) {
            return nullptr;
        }
        *reinterpret_cast<size_t*>(block) = c;
        return block + header_bytes;
    }

    bool holds(const void* p) const noexcept {
        const auto* at = static_cast<const std::byte*>(p);
        return at >= bytes_.data() && at < bytes_.data() + reserve_bytes;
    }

    void give_back(void* p) noexcept {
        std::byte* block = static_cast<std::byte*>(p) - header_bytes;
        size_t c = *reinterpret_cast<size_t*>(block);
        lock();
        *next_of(block) = free_[c];
        free_[c] = block;
        unlock();
    }

private:
    static std::byte** next_of(std::byte* block) noexcept {
        return reinterpret_cast<std::byte**>(block + header_bytes);
    }
    void lock() noexcept {
        while (busy_.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() noexcept { busy_.clear(std::memory_order_release); }

    std::atomic_flag busy_;
    size_t used_ = 0;
    std::array<std::byte*, class_count> free_{};
    alignas(64) std::array<std::byte, reserve_bytes> bytes_{};
};

Reserve& reserve() {
    static constinit Reserve r; // there before any constructor runs
    return r;
}

void release(void* p) noexcept {
    if (reserve().holds(p)) {
        reserve().give_back(p);
    } else {
        std::free(p);
    }
}

} // namespace

void* operator new(size_t n) {
    void* p = std::malloc(n == 0 ? 1 : n);
    p = p == nullptr ? reserve().take(n) : p;
    if (p == nullptr) {
        throw std::bad_alloc();
    }
    return p;
}
void* operator new[](size_t n) {
    return operator new(n);
}
void* operator new(size_t n, const std::nothrow_t&) noexcept {
    return std::malloc(n == 0 ? 1 : n); // its callers look at the result
}
void* operator new[](size_t n, const std::nothrow_t& t) noexcept {
    return operator new(n, t);
}
void operator delete(void* p) noexcept {
    release(p);
}
void operator delete[](void* p) noexcept {
    release(p);
}
void operator delete(void* p, size_t) noexcept {
    release(p);
}
void operator delete[](void* p, size_t) noexcept {
    release(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
    release(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
    release(p);
}
