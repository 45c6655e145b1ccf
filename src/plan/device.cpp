// SPDX-License-Identifier: Apache-2.0
#include "plan/device.h"

#include "base/error.h"
#include "plan/backend.h"
#include "plan/memory_source.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace ingot {

namespace {

constexpr std::align_val_t device_alignment{256};

} // namespace

std::byte* BackendMemory::allocate(int64_t bytes) const {
    return static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), device_alignment));
}

void BackendMemory::release(std::byte* memory) const noexcept {
    ::operator delete(memory, device_alignment);
}

} // namespace ingot

namespace ingot::plan {

namespace {

constexpr std::align_val_t host_alignment{64};

class HostDevice : public Device {
public:
    HostDevice() : Device(true) {}
    std::byte* allocate(int64_t bytes) override {
        auto* memory = static_cast<std::byte*>(
            ::operator new(static_cast<size_t>(bytes), host_alignment, std::nothrow));
        require(memory != nullptr, ErrorCode::OutOfMemory, "activations need ", bytes,
                " bytes, which the system does not have");
        return memory;
    }
    void release(std::byte* memory) noexcept override { ::operator delete(memory, host_alignment); }
    const std::byte* constant(const StoredConstant& c) override {
        CHECK(!c.is_gathered(), "a constant has no bytes on the host");
        return c.source().bytes().data();
    }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        if (bytes > 0) {
            std::memcpy(to, from, bytes);
        }
    }
    void fill(std::byte* to, int byte, size_t bytes) override {
        if (bytes > 0) {
            std::memset(to, byte, bytes);
        }
    }
    void read(void* to, const std::byte* from, size_t bytes) override {
        copy(static_cast<std::byte*>(to), from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        copy(to, static_cast<const std::byte*>(from), bytes);
    }
    void synchronize() override {}
    void set_memory(std::shared_ptr<MemorySource>) override {
        fail(ErrorCode::Internal, "the process's device has no other memory");
    }
};

/// Host memory from blocks of the application's source. Lives as long as its tensors.
class LentHostDevice : public HostDevice, public std::enable_shared_from_this<LentHostDevice> {
public:
    explicit LentHostDevice(std::shared_ptr<MemorySource> source)
        : first_(std::move(source)), source_(first_) {}
    std::byte* allocate(int64_t bytes) override {
        if (source_ == nullptr) {
            return HostDevice::allocate(bytes);
        }
        lent_.reserve(lent_.size() + 1); // nothing fails once the block is allocated
        std::byte* memory = source_->allocate(bytes);
        require(memory != nullptr, ErrorCode::OutOfMemory, "activations need ", bytes,
                " bytes, which the allocator does not give");
        lent_.push_back({memory, source_});
        return memory;
    }
    void release(std::byte* memory) noexcept override {
        auto it = std::find_if(lent_.begin(), lent_.end(),
                               [memory](const Lent& b) { return b.memory == memory; });
        if (it == lent_.end()) {
            HostDevice::release(memory);
            return;
        }
        std::shared_ptr<MemorySource> giver = std::move(it->source);
        std::swap(*it, lent_.back());
        lent_.pop_back();
        giver->release(memory);
    }
    void set_memory(std::shared_ptr<MemorySource> source) override {
        source_ = source == nullptr ? first_ : std::move(source);
    }

protected:
    std::shared_ptr<void> owner() override { return shared_from_this(); }

private:
    struct Lent {
        std::byte* memory;
        std::shared_ptr<MemorySource> source;
    };
    std::shared_ptr<MemorySource> first_;  // null: the system
    std::shared_ptr<MemorySource> source_; // the current one; null: the system
    std::vector<Lent> lent_;
};

} // namespace

std::shared_ptr<Device> make_host_device(std::shared_ptr<MemorySource> source) {
    return std::make_shared<LentHostDevice>(std::move(source));
}

Device& host_device() {
    static HostDevice device;
    return device;
}

/// Buffers of destroyed tensors.
struct Device::Spare {
    std::vector<std::unique_ptr<GrowingBuffer>> buffers;
    size_t made = 0; // buffers in existence, used ones too: `buffers` has room for all
    bool closed = false;
};

void Device::end_draws() {
    if (parts_.state != nullptr) {
        parts_.state->advance_draws();
    }
    runs_that_drew_ += draws_ ? 1 : 0;
    draws_ = false;
}

Device::~Device() {
    CHECK(spare_ == nullptr); // the allocator is already gone
}

void Device::release_spare() noexcept {
    if (spare_ != nullptr) {
        spare_->closed = true; // used buffers return by themselves
        spare_->buffers.clear();
        spare_ = nullptr;
    }
}

Tensor Device::tensor(DType dtype, Shape shape) {
    auto bytes = static_cast<int64_t>(byte_size(dtype, count_of(shape)));
    if (is_host()) { // allocation is fast, and the caller may keep results
        std::byte* own = allocate(std::max<int64_t>(bytes, 1));
        std::shared_ptr<void> giver(
            own, [this, owner = owner()](void* m) { release(static_cast<std::byte*>(m)); });
        return Tensor::wrap_mutable(dtype, std::move(shape), {own, static_cast<size_t>(bytes)},
                                    std::move(giver));
    }
    if (spare_ == nullptr) {
        spare_ = std::make_shared<Spare>();
    }
    auto& free = spare_->buffers;
    // The smallest buffer that is large enough, else the largest.
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
        int64_t size = (*it)->bytes();
        int64_t other = best == free.end() ? -1 : (*best)->bytes();
        if (other < bytes ? size > other : size >= bytes && size < other) {
            best = it;
        }
    }
    std::unique_ptr<GrowingBuffer> buffer;
    if (best == free.end()) {
        free.reserve(++spare_->made);
        buffer = std::make_unique<GrowingBuffer>(*this);
    } else {
        buffer = std::move(*best);
        free.erase(best);
    }
    buffer->reserve(std::max<int64_t>(bytes, 1));
    std::byte* memory = buffer->data();
    std::shared_ptr<GrowingBuffer> owner(buffer.release(), [all = spare_](GrowingBuffer* b) {
        std::unique_ptr<GrowingBuffer> gone(b);
        if (!all->closed) {
            all->buffers.push_back(std::move(gone)); // the capacity is reserved
        }
    });
    return Tensor::wrap_mutable(dtype, std::move(shape), {memory, static_cast<size_t>(bytes)},
                                std::move(owner));
}

GrowingBuffer::~GrowingBuffer() {
    give_back();
}

GrowingBuffer::GrowingBuffer(GrowingBuffer&& o) noexcept
    : device_(o.device_), data_(std::exchange(o.data_, nullptr)),
      bytes_(std::exchange(o.bytes_, 0)), lent_(std::exchange(o.lent_, false)) {}

GrowingBuffer& GrowingBuffer::operator=(GrowingBuffer&& o) noexcept {
    std::swap(device_, o.device_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    std::swap(lent_, o.lent_);
    return *this;
}

bool GrowingBuffer::reserve(int64_t bytes) {
    if (bytes <= bytes_) {
        return false;
    }
    require(!lent_, ErrorCode::InvalidArgument, "activations take ", bytes,
            " bytes, the memory given for them has ", bytes_);
    give_back();
    data_ = device_->allocate(bytes);
    bytes_ = bytes;
    return true;
}

void GrowingBuffer::give_back() {
    if (lent_) {
        return;
    }
    if (data_ != nullptr) {
        device_->release(std::exchange(data_, nullptr));
    }
    bytes_ = 0;
}

void GrowingBuffer::lend(std::byte* memory, int64_t bytes) {
    give_back();
    lent_ = memory != nullptr;
    data_ = memory;
    bytes_ = lent_ ? bytes : 0;
}

} // namespace ingot::plan
