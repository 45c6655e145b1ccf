// SPDX-License-Identifier: Apache-2.0
// A GPU in host memory: one memory file, mapped twice. Callers get addresses of the first mapping,
// which has no access rights; the plugin adds the distance to the second.
#include "plugins/common/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

namespace ingot {

namespace {

constexpr size_t space = 2ULL << 30U;
constexpr size_t alignment = 256;

class SimulatedMemory final : public DeviceMemory {
public:
    /// `room` bytes of it can be allocated.
    SimulatedMemory(size_t room, HostCopies copies)
        : room_(std::min(room, space)), copies_(copies) {
        int file = memfd_create("ingot_simulated_gpu", MFD_CLOEXEC);
        require(file >= 0 && ftruncate(file, static_cast<off_t>(space)) == 0, ErrorCode::Device,
                "the simulated GPU has no memory");
        shown_ = static_cast<std::byte*>(mmap(nullptr, space, PROT_NONE, MAP_SHARED, file, 0));
        real_ = static_cast<std::byte*>(
            mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
        close(file);
        require(shown_ != MAP_FAILED && real_ != MAP_FAILED, ErrorCode::Device,
                "the simulated GPU has no addresses");
        free_.emplace(0, room_);
    }
    ~SimulatedMemory() override {
        munmap(shown_, space);
        munmap(real_, space);
    }

    void* allocate(size_t bytes) override {
        size_t wanted = (bytes + alignment - 1) / alignment * alignment;
        wanted = wanted == 0 ? alignment : wanted;
        std::lock_guard<std::mutex> lock(mutex_);
        for (auto it = free_.begin(); it != free_.end(); ++it) {
            if (it->second >= wanted) {
                auto [at, room] = *it;
                free_.erase(it);
                if (room > wanted) {
                    free_.emplace(at + wanted, room - wanted);
                }
                used_.emplace(at, wanted);
                return shown_ + at;
            }
        }
        fail(ErrorCode::OutOfMemory, "the simulated GPU has no ", bytes, " bytes left");
    }
    void release(void* memory) noexcept override {
        std::lock_guard<std::mutex> lock(mutex_);
        auto it = used_.find(static_cast<size_t>(static_cast<std::byte*>(memory) - shown_));
        if (it == used_.end()) {
            return;
        }
        auto [at, bytes] = *it;
        used_.erase(it);
        auto next = free_.find(at + bytes);
        if (next != free_.end()) {
            bytes += next->second;
            next = free_.erase(next);
        } else {
            next = free_.lower_bound(at);
        }
        if (next != free_.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == at) {
                before->second += bytes;
                return;
            }
        }
        free_.emplace(at, bytes);
    }
    void* allocate_pinned(size_t bytes) override {
        void* memory = ::operator new(bytes + 1, std::align_val_t(alignment));
        try {
            std::lock_guard<std::mutex> lock(mutex_);
            pinned_.emplace(static_cast<std::byte*>(memory), bytes);
        } catch (...) {
            ::operator delete(memory, std::align_val_t(alignment));
            throw;
        }
        return memory;
    }
    void release_pinned(void* memory) noexcept override {
        std::lock_guard<std::mutex> lock(mutex_);
        pinned_.erase(static_cast<std::byte*>(memory));
        ::operator delete(memory, std::align_val_t(alignment));
    }
    void copy(void* target, const void* source, size_t bytes, void* stream) override {
        if (stream != nullptr && copies_ == HostCopies::kPINNED_ALONE) {
            require(is_quick(target, bytes) && is_quick(source, bytes), ErrorCode::Internal,
                    "a copy of ", bytes,
                    " bytes in a stream's order has pageable memory on a side");
        }
        std::memmove(engine_address(target), engine_address(const_cast<void*>(source)), bytes);
    }
    void set_zero(void* target, size_t bytes, void*) override {
        std::memset(engine_address(target), 0, bytes);
    }
    // Every call completes before it returns; handles only have to be distinct.
    void* create_stream(RunPriority) override {
        void* stream = allocate_pinned(1);
        std::lock_guard<std::mutex> lock(mutex_);
        return *streams_.insert(stream).first;
    }
    void release_stream(void* stream) noexcept override {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            streams_.erase(stream);
        }
        release_pinned(stream);
    }
    void wait_for_stream(void*) override {}
    void wait() override {}
    void* create_event() override { return allocate_pinned(1); }
    void release_event(void* event) noexcept override { release_pinned(event); }
    void record(void*, void*) override {}
    void make_wait(void*, void*) override {}
    void wait_for_event(void*) override {}
    bool has_passed(void*) override { return true; }
    bool is_lost() noexcept override { return false; }
    void check_stream(void* stream) override {
        std::lock_guard<std::mutex> lock(mutex_);
        require(streams_.contains(stream), ErrorCode::InvalidArgument,
                "user_compute_stream belongs to another context than the simulated GPU's");
    }
    bool is_captured(void*) override { return false; }
    void* engine_address(void* memory) const override {
        auto* at = static_cast<std::byte*>(memory);
        bool is_ours = at >= shown_ && at < shown_ + space;
        return is_ours ? real_ + (at - shown_) : at;
    }
    void* engine_stream(void*) const override { return nullptr; }

private:
    /// Whether it is the GPU's, or pinned.
    bool is_quick(const void* memory, size_t bytes) {
        const auto* at = static_cast<const std::byte*>(memory);
        if (at >= shown_ && at < shown_ + space) {
            return true;
        }
        std::lock_guard<std::mutex> lock(mutex_);
        auto behind = pinned_.upper_bound(const_cast<std::byte*>(at));
        if (behind == pinned_.begin()) {
            return false;
        }
        auto [begin, size] = *std::prev(behind);
        return at + bytes <= begin + size;
    }

    std::byte* shown_ = nullptr;
    std::byte* real_ = nullptr;
    std::mutex mutex_;
    size_t room_;
    HostCopies copies_;
    std::map<size_t, size_t> free_; // offset -> bytes
    std::map<size_t, size_t> used_;
    std::set<void*> streams_;
    std::map<std::byte*, size_t> pinned_;
};

} // namespace

std::shared_ptr<DeviceMemory> simulated_gpu(size_t bytes, HostCopies copies) {
    return std::make_shared<SimulatedMemory>(bytes, copies);
}

} // namespace ingot
