// SPDX-License-Identifier: Apache-2.0
// SlowGpu: a GPU whose writes from the host the test holds up, counts or lets fail.
#pragma once

#include "backends_cuda/timed_gpu.h"
#include "ir/tensor.h"

#include <chrono>
#include <condition_variable>
#include <random>
#include <thread>

namespace ingot::test {

class SlowGpu : public TimedGpu {
public:
    class SlowStream : public cuda::Stream {
    public:
        explicit SlowStream(SlowGpu& gpu) : gpu_(gpu) {}
        void launch(const cuda::Function&, const cuda::LaunchShape&, void* const*) override {}
        void copy(std::byte*, const std::byte*, size_t) override {}
        void fill(std::byte*, int, size_t) override {}
        void read(void* to, const std::byte* from, size_t bytes) override {
            gpu_.read_bytes_ += static_cast<int64_t>(bytes);
            require(!gpu_.reads_fail, ErrorCode::Device, "the link back is down");
            std::memcpy(to, from, bytes);
        }
        void write(std::byte* to, const void* from, size_t bytes) override {
            gpu_.pass(bytes);
            std::memcpy(to, from, bytes);
            queued_ += static_cast<int64_t>(bytes);
            gpu_.queue(static_cast<int64_t>(bytes));
        }
        void synchronize() override { gpu_.queue(-std::exchange(queued_, 0)); }

    private:
        SlowGpu& gpu_;
        int64_t queued_ = 0;
    };
    std::unique_ptr<cuda::Stream> create_stream() override {
        return std::make_unique<SlowStream>(*this);
    }
    std::unique_ptr<cuda::Stream> create_stream_of(RunPriority) override { return create_stream(); }

    void close() {
        std::scoped_lock lock(gate_);
        open_ = false;
    }
    void open() {
        std::scoped_lock lock(gate_);
        open_ = true;
        opened_.notify_all();
    }
    /// The n-th write from now on (0 is the next) and all after it fail; -1: none does.
    void fail_from(int64_t n) { left_ = n; }
    int64_t written() const { return written_; }
    int64_t read() const { return read_bytes_; }
    /// The most bytes that were written and not waited for at a time.
    int64_t most_queued() const {
        std::scoped_lock lock(gate_);
        return most_queued_;
    }
    std::atomic<bool> reads_fail{false};
    std::set<std::thread::id> writers() const {
        std::scoped_lock lock(gate_);
        return writers_;
    }

private:
    void pass(size_t bytes) {
        std::unique_lock lock(gate_);
        require(opened_.wait_for(lock, std::chrono::minutes(1), [this] { return open_; }),
                ErrorCode::Device, "nobody has opened the gate for a minute");
        require(left_ != 0, ErrorCode::Device, "the link is down");
        left_ -= left_ > 0 ? 1 : 0;
        written_ += static_cast<int64_t>(bytes);
        writers_.insert(std::this_thread::get_id());
    }
    void queue(int64_t bytes) {
        std::scoped_lock lock(gate_);
        queued_ += bytes;
        most_queued_ = std::max(most_queued_, queued_);
    }
    mutable std::mutex gate_;
    int64_t queued_ = 0;
    int64_t most_queued_ = 0;
    std::condition_variable opened_;
    bool open_ = true;
    std::atomic<int64_t> left_{-1};
    std::atomic<int64_t> written_{0};
    std::atomic<int64_t> read_bytes_{0};
    std::set<std::thread::id> writers_;
};

inline Tensor random_bytes(int64_t count, uint64_t seed) {
    Tensor t = Tensor::empty(DType::U8, {count});
    std::mt19937_64 random(seed);
    for (size_t at = 0; at < t.bytes().size(); at += 8) {
        uint64_t v = random();
        std::memcpy(t.mutable_bytes().data() + at, &v, std::min<size_t>(8, t.bytes().size() - at));
    }
    return t;
}

} // namespace ingot::test
