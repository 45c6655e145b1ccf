// SPDX-License-Identifier: Apache-2.0
#include "plan/device.h"

#include "base/error.h"
#include "plan/backend.h"

#include <cstring>
#include <new>
#include <utility>

namespace ingot::plan {

namespace {

constexpr std::align_val_t host_alignment{64};

class HostDevice : public Device {
public:
    std::byte* allocate(int64_t bytes) override {
        auto* memory = static_cast<std::byte*>(
            ::operator new(static_cast<size_t>(bytes), host_alignment, std::nothrow));
        require(memory != nullptr, ErrorCode::OutOfMemory, "activations need ", bytes,
                " bytes, which the system does not have");
        return memory;
    }
    void release(std::byte* memory) noexcept override { ::operator delete(memory, host_alignment); }
    const std::byte* constant(const Tensor& t) override { return t.bytes().data(); }
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
    bool is_host() const override { return true; }
};

/// Host memory in blocks that the application gives.
class LentHostDevice : public HostDevice {
public:
    explicit LentHostDevice(std::shared_ptr<MemorySource> source) : source_(std::move(source)) {}
    std::byte* allocate(int64_t bytes) override {
        std::byte* memory = source_->allocate(bytes);
        require(memory != nullptr, ErrorCode::OutOfMemory, "activations need ", bytes,
                " bytes, which the allocator does not give");
        return memory;
    }
    void release(std::byte* memory) noexcept override { source_->release(memory); }

private:
    std::shared_ptr<MemorySource> source_;
};

} // namespace

std::shared_ptr<Device> make_host_device(std::shared_ptr<MemorySource> source) {
    return std::make_shared<LentHostDevice>(std::move(source));
}

Device& host_device() {
    static HostDevice device;
    return device;
}

Tensor Device::tensor(DType dtype, Shape shape) {
    size_t bytes = byte_size(dtype, count_of(shape));
    std::byte* memory = allocate(static_cast<int64_t>(bytes > 0 ? bytes : 1));
    std::shared_ptr<void> owner(memory, [this](void* p) { release(static_cast<std::byte*>(p)); });
    return Tensor::wrap_mutable(dtype, std::move(shape), {memory, bytes}, std::move(owner));
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
