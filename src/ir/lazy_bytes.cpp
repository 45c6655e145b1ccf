// SPDX-License-Identifier: Apache-2.0
#include "ir/lazy_bytes.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/trace.h"

#include <algorithm>

namespace ingot {

namespace {

constexpr int64_t piece_bytes = 64 << 10; // that a thread copies at a time

} // namespace

void JoinedTensors::read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const {
    size_t whole_row = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        whole_row += row_bytes(i);
    }
    while (!to.empty()) {
        size_t row = offset / whole_row;
        size_t at = offset % whole_row;
        for (size_t i = 0; i < parts.size() && !to.empty(); ++i) {
            size_t bytes = row_bytes(i);
            if (at < bytes) {
                size_t count = std::min(bytes - at, to.size());
                parts[i].read(row * bytes + at, to.first(count), pool);
                to = to.subspan(count);
                offset += count;
                at = bytes;
            }
            at -= bytes;
        }
    }
}

/// New memory and a file's pages come by as many threads as copy.
Tensor LazyBytes::join(ThreadPool& pool) const {
    for (const Tensor& t : joined_.parts) {
        static_cast<void>(t.bytes(pool)); // which may throw, as loops of a pool must not
    }
    Tensor out = Tensor::empty(DType::U8, {static_cast<int64_t>(count_)});
    std::span<std::byte> to = out.mutable_bytes();
    auto pieces = (std::ssize(to) + piece_bytes - 1) / piece_bytes;
    pool.parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        auto first = static_cast<size_t>(begin * piece_bytes);
        size_t last = std::min(static_cast<size_t>(end * piece_bytes), to.size());
        joined_.read(first, to.subspan(first, last - first), pool);
    });
    return out;
}

std::span<const std::byte> LazyBytes::get(ThreadPool& pool) const {
    if (is_made()) {
        return made_.bytes();
    }
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!ThreadPool::is_inside()) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return make_apart(pool);
    }
    if (!is_made()) {
        made_ = make(pool);
        is_made_.store(true, std::memory_order_release);
    }
    return made_.bytes();
}

Tensor LazyBytes::make(ThreadPool& pool) const {
    TraceSpan span("make a constant", str(count_, " bytes"));
    Tensor out = make_ == nullptr ? join(pool) : make_(pool);
    CHECK(out.bytes(pool).size() == count_, "a lazy tensor of ", count_, " bytes became ",
          out.byte_count());
    return out;
}

std::span<const std::byte> LazyBytes::make_apart(ThreadPool& pool) const {
    std::scoped_lock lock(apart_mutex_); // its holder is in a loop too, and waits for no pool
    if (!apart_.has_value()) {
        apart_ = make(pool);
    }
    return apart_->bytes();
}

Tensor Tensor::lazy(DType dtype, Shape shape, MakeTensor make) {
    CHECK(make != nullptr, "a lazy tensor has no function");
    Tensor t;
    t.count_ = count_of(shape);
    t.dtype_ = dtype;
    t.shape_ = std::move(shape);
    auto bytes = std::make_shared<LazyBytes>(byte_size(dtype, t.count_), std::move(make));
    t.lazy_ = bytes.get();
    t.owner_ = std::move(bytes);
    return t;
}

Tensor Tensor::joined(std::vector<Tensor> parts, int64_t axis) {
    CHECK(!parts.empty(), "nothing to join");
    Tensor t;
    t.dtype_ = parts[0].dtype();
    t.shape_ = parts[0].shape();
    auto at = static_cast<size_t>(axis);
    JoinedTensors joined;
    joined.rows = static_cast<size_t>(count_of({t.shape_.begin(), t.shape_.begin() + axis}));
    t.shape_[at] = 0;
    for (Tensor& p : parts) {
        t.shape_[at] += p.shape()[at];
        size_t row = p.byte_count() / std::max<size_t>(joined.rows, 1);
        CHECK(p.dtype() == t.dtype_ && p.rank() == t.rank() &&
                  p.count() * bit_width(t.dtype_) == static_cast<int64_t>(row * joined.rows * 8),
              "a part ", p.dtype(), p.shape(), " of ", t.dtype_, t.shape_, ", joined by axis ",
              axis);
        if (p.byte_count() > 0) {
            joined.parts.push_back(std::move(p));
        }
    }
    t.count_ = count_of(t.shape_);
    auto bytes = std::make_shared<LazyBytes>(byte_size(t.dtype_, t.count_), std::move(joined));
    t.lazy_ = bytes.get();
    t.owner_ = std::move(bytes);
    return t;
}

std::span<const std::byte> Tensor::make_bytes() const {
    return lazy_->get(ThreadPool::shared());
}

std::span<const std::byte> Tensor::bytes(ThreadPool& pool) const {
    return lazy_ == nullptr ? bytes_ : lazy_->get(pool);
}

bool Tensor::is_made() const {
    return lazy_ == nullptr || lazy_->is_made();
}

size_t Tensor::byte_count() const {
    return lazy_ == nullptr ? bytes_.size() : lazy_->count();
}

const void* Tensor::identity() const {
    return lazy_ == nullptr ? static_cast<const void*>(bytes_.data()) : lazy_;
}

const JoinedTensors* Tensor::unjoined() const {
    return lazy_ == nullptr ? nullptr : lazy_->joined();
}

void Tensor::read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const {
    if (const JoinedTensors* parts = unjoined()) {
        parts->read(offset, to, pool);
        return;
    }
    std::span<const std::byte> from = bytes(pool).subspan(offset, to.size());
    std::copy(from.begin(), from.end(), to.begin());
}

} // namespace ingot
