// SPDX-License-Identifier: Apache-2.0
// StableVector: elements stay where they are while others are added at the end.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ingot {

/// In blocks of 256: an element is found by two loads, where std::deque, with blocks of 512 bytes,
/// divides.
template <class T>
class StableVector {
public:
    StableVector() = default;
    ~StableVector() { resize_down(0); }
    StableVector(const StableVector&) = delete;
    StableVector& operator=(const StableVector&) = delete;

    size_t size() const { return size_; }
    const T& operator[](size_t i) const { return blocks_[i / per_block].get()[i % per_block]; }
    T& operator[](size_t i) { return blocks_[i / per_block].get()[i % per_block]; }
    void push_back(T value) {
        if (size_ == blocks_.size() * per_block) {
            std::unique_ptr<T, Free> block(std::allocator<T>().allocate(per_block));
            blocks_.push_back(std::move(block));
        }
        new (&(*this)[size_]) T(std::move(value));
        ++size_;
    }
    /// Destroys the elements from `size` on.
    void resize_down(size_t size) {
        while (size_ > size) {
            --size_;
            (*this)[size_].~T();
        }
    }

private:
    static constexpr size_t per_block = 256;
    struct Free {
        void operator()(T* block) const { std::allocator<T>().deallocate(block, per_block); }
    };
    std::vector<std::unique_ptr<T, Free>> blocks_;
    size_t size_ = 0;
};

} // namespace ingot
