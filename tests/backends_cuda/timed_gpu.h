// SPDX-License-Identifier: Apache-2.0
// TimedGpu: a GPU that computes nothing. Its memory is the host's, compiling returns the text, and
// its clock advances only by the test's costs of kernels and compilations.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "base/error.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace ingot::test {

class TimedGpu : public cuda::Gpu {
public:
    explicit TimedGpu(int cc = 90) : arch_(kernels::arch_of(cc)) { arch_.l2_bytes = 1 << 20; }

    /// Microseconds of a launch; by default 10.
    std::function<double(const std::string& text, const cuda::LaunchShape& shape)> launch_us;
    /// Milliseconds of a compilation; throws for a text that does not compile. By default 0.
    std::function<double(const std::string& text)> compile_ms;

    struct Launch {
        std::string text;
        bool background = false;
        bool recorded = false; // while a stream records
    };
    std::vector<Launch> launches() const {
        std::scoped_lock lock(mutex_);
        return launches_;
    }
    void forget_launches() {
        std::scoped_lock lock(mutex_);
        launches_.clear();
    }
    int compiled() const { return compiled_; }
    int64_t used() const {
        std::scoped_lock lock(mutex_);
        int64_t n = 0;
        for (const auto& [p, bytes] : blocks_) {
            n += bytes;
        }
        return n;
    }
    size_t allocations() const {
        std::scoped_lock lock(mutex_);
        return blocks_.size();
    }
    /// Large fills, which clear the L2 cache.
    int flushes() const { return flushes_; }
    int64_t memory = int64_t{1} << 40;

    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return "a GPU with a clock, driver 1"; }
    std::string identity() const override { return "a GPU with a clock"; }
    std::string compiler() const override { return "no compiler"; }
    double now_ms() const override {
        std::scoped_lock lock(mutex_);
        return clock_ms_;
    }
    std::string compile(const std::string& text) const override {
        double ms = compile_ms ? compile_ms(text) : 0;
        std::scoped_lock lock(mutex_);
        clock_ms_ += ms;
        ++compiled_;
        return text;
    }
    std::shared_ptr<const cuda::Function> load(std::string_view binary, const std::string&,
                                               int64_t) override {
        auto f = std::make_shared<Text>();
        f->text = binary;
        return f;
    }
    std::unique_ptr<cuda::Stream> create_stream() override;
    std::unique_ptr<cuda::Stream> create_stream_of(RunPriority priority) override;
    std::byte* allocate(int64_t bytes) override {
        std::scoped_lock lock(mutex_);
        int64_t held = 0;
        for (const auto& [p, n] : blocks_) {
            held += n;
        }
        require(held + bytes <= memory, ErrorCode::OutOfMemory, bytes, " bytes are not left");
        size_t room = (static_cast<size_t>(bytes) + 256) / 256 * 256;
        auto* p = static_cast<std::byte*>(std::aligned_alloc(256, room));
        blocks_[p] = bytes;
        return p;
    }
    void release(std::byte* p) noexcept override {
        std::scoped_lock lock(mutex_);
        blocks_.erase(p);
        std::free(p);
    }
    void encode(const kernels::TensorMap&, std::byte*, std::byte*) const override {}

private:
    friend class TimedStream;
    struct Text : cuda::Function {
        std::string text;
    };
    struct Nothing : cuda::Recording {};

    kernels::Arch arch_;
    mutable std::mutex mutex_;
    mutable double clock_ms_ = 0;
    mutable std::atomic<int> compiled_{0};
    std::atomic<int> flushes_{0};
    std::vector<Launch> launches_;
    std::map<std::byte*, int64_t> blocks_;
};

class TimedStream final : public cuda::Stream, cuda::StreamRecorder, plan::DeviceClock {
public:
    TimedStream(TimedGpu& gpu, bool background) : gpu_(gpu), background_(background) {
        set_parts({.recorder = this, .clock = this});
    }
    void launch(const cuda::Function& f, const cuda::LaunchShape& shape, void* const*) override {
        const std::string& text = static_cast<const TimedGpu::Text&>(f).text;
        double us = gpu_.launch_us ? gpu_.launch_us(text, shape) : 10;
        std::scoped_lock lock(gpu_.mutex_);
        gpu_.launches_.push_back({text, background_, recording_});
        gpu_.clock_ms_ += recording_ ? 0 : us / 1e3;
    }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        std::memmove(to, from, bytes);
    }
    void fill(std::byte* to, int byte, size_t bytes) override {
        std::memset(to, byte, bytes);
        gpu_.flushes_ += bytes > static_cast<size_t>(gpu_.arch_.l2_bytes) ? 1 : 0;
    }
    void read(void* to, const std::byte* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void synchronize() override {}
    bool begin_recording() override {
        recording_ = true;
        return true;
    }
    std::unique_ptr<cuda::Recording> end_recording() override {
        recording_ = false;
        return std::make_unique<TimedGpu::Nothing>();
    }
    void launch(const cuda::Recording&) override {}
    int mark() override {
        marks_.push_back(gpu_.now_ms());
        return static_cast<int>(marks_.size()) - 1;
    }
    double elapsed_ms(int from, int to) override {
        return marks_.at(static_cast<size_t>(to)) - marks_.at(static_cast<size_t>(from));
    }
    void forget() override { marks_.clear(); }
    void hold() override {}
    void resume() override {}

private:
    TimedGpu& gpu_;
    bool background_;
    bool recording_ = false;
    std::vector<double> marks_;
};

inline std::unique_ptr<cuda::Stream> TimedGpu::create_stream() {
    return std::make_unique<TimedStream>(*this, false);
}

inline std::unique_ptr<cuda::Stream> TimedGpu::create_stream_of(RunPriority priority) {
    return std::make_unique<TimedStream>(*this, priority == RunPriority::Low);
}

} // namespace ingot::test
