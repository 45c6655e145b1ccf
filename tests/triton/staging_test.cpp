// SPDX-License-Identifier: Apache-2.0
// Inputs on their way through pinned memory, on a GPU that copies as late as it may.
#include "base/cpus.h"
#include "plugins/triton/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <random>

namespace ingot::triton {
namespace {

/// Its memory is the host's. It does queued work when somebody waits for it.
class LateGpu final : public DeviceMemory {
public:
    void* allocate(size_t bytes) override { return ::operator new(bytes); }
    void release(void* memory) noexcept override { ::operator delete(memory); }
    void* allocate_pinned(size_t bytes) override {
        pinned.push_back(bytes);
        return allocate(bytes);
    }
    void release_pinned(void* memory) noexcept override { release(memory); }
    void copy(void* target, const void* source, size_t bytes, void*) override {
        copies.push_back(bytes);
        queue_.push_back([=] { std::memcpy(target, source, bytes); });
    }
    void set_zero(void*, size_t, void*) override {}
    void* create_stream(RunPriority) override { return this; }
    void release_stream(void*) noexcept override {}
    void wait_for_stream(void*) override { finish(done_ + queue_.size()); }
    void wait() override { wait_for_stream(nullptr); }
    void* create_event() override { return new size_t(0); }
    void release_event(void* event) noexcept override { delete static_cast<size_t*>(event); }
    void record(void* event, void*) override {
        ++events;
        *static_cast<size_t*>(event) = done_ + queue_.size();
    }
    void make_wait(void*, void*) override {}
    void wait_for_event(void* event) override { finish(*static_cast<size_t*>(event)); }
    bool has_passed(void*) override { return false; }
    bool is_lost() noexcept override { return false; }
    void check_stream(void*) override {}
    bool is_captured(void*) override { return false; }

    std::vector<size_t> pinned; // bytes of each allocation
    std::vector<size_t> copies;
    int events = 0; // recorded

private:
    void finish(size_t count) {
        for (; done_ < count; ++done_) {
            queue_.front()();
            queue_.pop_front();
        }
    }
    std::deque<std::function<void()>> queue_;
    size_t done_ = 0;
};

struct TritonStaging : testing::Test {
    std::shared_ptr<LateGpu> gpu = std::make_shared<LateGpu>();
    MetricFamilies families;
    ModelMetrics metrics{families, "model", 1};
    DeviceAllocator device{gpu, metrics};
    HostCopier copier;
    std::mt19937 random{5};

    /// Sends inputs of these sizes, each in parts of at most `part` bytes, and compares what
    /// arrives.
    void send(InputStaging& staging, const std::vector<size_t>& sizes, size_t part) {
        std::vector<std::vector<std::byte>> sent;
        std::vector<std::vector<std::byte>> arrived;
        for (size_t bytes : sizes) {
            std::vector<std::byte> input(bytes);
            for (std::byte& b : input) {
                b = static_cast<std::byte>(random());
            }
            sent.push_back(input);
            arrived.emplace_back(bytes);
            std::vector<PageablePart> parts;
            for (size_t at = 0; at < bytes; at += part) {
                parts.push_back({at, input.data() + at, std::min(part, bytes - at)});
            }
            staging.send(parts, arrived.back().data(), copier, nullptr);
            std::fill(input.begin(), input.end(), std::byte{0}); // the server's again
        }
        gpu->wait_for_stream(nullptr);
        staging.reset();
        EXPECT_EQ(sent, arrived);
    }
};

TEST_F(TritonStaging, SmallInputsStandBesideEachOtherWithoutAnEvent) {
    InputStaging staging(&device);
    send(staging, {1024, 1024, 8}, 512);
    EXPECT_EQ(gpu->pinned, std::vector<size_t>({65536}));
    EXPECT_EQ(gpu->copies, std::vector<size_t>({1024, 1024, 8})); // one an input
    EXPECT_EQ(gpu->events, 0);
}

TEST_F(TritonStaging, AnImageIsOneCopyWithoutAnEvent) {
    InputStaging staging(&device);
    send(staging, {602'112}, 4096);
    EXPECT_EQ(gpu->copies, std::vector<size_t>({602'112}));
    EXPECT_EQ(gpu->events, 0);
}

/// A half that is not sent yet keeps its bytes.
TEST_F(TritonStaging, LargeInputsGoThroughTwoHalves) {
    InputStaging staging(&device);
    constexpr size_t half = InputStaging::most_half;
    for (size_t part : {size_t{4096}, size_t{100'001}, 16 * half}) {
        SCOPED_TRACE(part);
        send(staging, {9 * half + 7}, part);
        send(staging, {1, 3 * half, 5, half - 1, 2 * half + 1, 100}, part);
        send(staging, {70'000, 65'536, 64, half}, part);
    }
    for (size_t bytes : gpu->pinned) {
        EXPECT_LE(bytes, half);
    }
}

TEST_F(TritonStaging, PreparedInputsLockNoPages) {
    constexpr size_t half = InputStaging::most_half;
    const std::vector<std::vector<size_t>> batches = {
        {5 * half, 40, half}, {half / 2, 8, 100'000}, {1, 1, 1}, {0, 70'000, 70'001}};
    InputStaging staging(&device);
    for (const std::vector<size_t>& sizes : batches) {
        staging.prepare(sizes, nullptr);
    }
    size_t locked = gpu->pinned.size();
    for (const std::vector<size_t>& sizes : batches) {
        std::vector<size_t> sent;
        std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(sent),
                     [](size_t bytes) { return bytes > 0; });
        send(staging, sent, 4096);
    }
    EXPECT_EQ(gpu->pinned.size(), locked);
}

/// Threads of this process.
size_t threads() {
    auto tasks = std::filesystem::directory_iterator("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Waking a thread takes longer than the copy of an image.
TEST_F(TritonStaging, ShortCopiesTakeNoOtherThread) {
    InputStaging staging(&device);
    size_t before = threads();
    send(staging, {602'112, 393'216, HostCopier::most_alone}, 4096);
    EXPECT_EQ(threads(), before);
    send(staging, {InputStaging::most_half}, 4096);
    EXPECT_EQ(threads(), before + std::min<size_t>(usable_cpus().size(), 4) - 1);
}

} // namespace
} // namespace ingot::triton
