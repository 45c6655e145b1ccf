// SPDX-License-Identifier: Apache-2.0
// QuietGpu: a GPU whose kernels do nothing, without locks, so that ThreadSanitizer sees only the
// backend's own synchronisation. Its memory is the host's.
#pragma once

#include "backends/cuda/driver/gpu.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace ingot::test {

class QuietGpu : public cuda::Gpu {
public:
    QuietGpu() : arch_(kernels::arch_of(90)) { arch_.l2_bytes = 1 << 12; }

    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return "a quiet GPU, driver 1"; }
    std::string identity() const override { return "a quiet GPU"; }
    std::string compiler() const override { return "no compiler"; }
    std::string compile(const std::string& text) const override { return text; }
    std::shared_ptr<const cuda::Function> load(std::string_view binary, const std::string&,
                                               int64_t) override {
        auto f = std::make_shared<Text>();
        f->text = binary;
        return f;
    }
    std::unique_ptr<cuda::Stream> create_stream() override {
        return std::make_unique<QuietStream>(*this);
    }
    double now_ms() const override {
        return static_cast<double>(clock_us_.load(std::memory_order_relaxed)) / 1e3;
    }
    std::byte* allocate(int64_t bytes) override {
        size_t room = (static_cast<size_t>(bytes) + 256) / 256 * 256;
        auto* p = static_cast<std::byte*>(std::aligned_alloc(256, room));
        std::memset(p, 0, room);
        live.fetch_add(1, std::memory_order_relaxed);
        return p;
    }
    void release(std::byte* p) noexcept override {
        live.fetch_sub(1, std::memory_order_relaxed);
        std::free(p);
    }
    void encode(const kernels::TensorMap&, std::byte*, std::byte*) const override {}

    std::atomic<int64_t> live{0}; // blocks
    std::atomic<int64_t> launches{0};

private:
    struct Text : cuda::Function {
        std::string text;
    };
    struct Nothing : cuda::Recording {};

    class QuietStream final : public cuda::Stream, cuda::StreamRecorder, plan::DeviceClock {
    public:
        explicit QuietStream(QuietGpu& gpu) : gpu_(gpu) {
            set_parts({this, nullptr, nullptr, this});
        }
        void launch(const cuda::Function& f, const cuda::LaunchShape&, void* const*) override {
            bool is_kernel = !static_cast<const Text&>(f).text.empty();
            gpu_.launches.fetch_add(is_kernel ? 1 : 0, std::memory_order_relaxed);
            gpu_.clock_us_.fetch_add(10, std::memory_order_relaxed);
        }
        void copy(std::byte* to, const std::byte* from, size_t bytes) override {
            std::memmove(to, from, bytes);
        }
        void fill(std::byte* to, int byte, size_t bytes) override { std::memset(to, byte, bytes); }
        void read(void* to, const std::byte* from, size_t bytes) override {
            std::memcpy(to, from, bytes);
        }
        void write(std::byte* to, const void* from, size_t bytes) override {
            std::memcpy(to, from, bytes);
        }
        void synchronize() override {}
        bool begin_recording() override { return true; }
        std::unique_ptr<cuda::Recording> end_recording() override {
            return std::make_unique<Nothing>();
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
        QuietGpu& gpu_;
        std::vector<double> marks_;
    };

    kernels::Arch arch_;
    std::atomic<int64_t> clock_us_{0};
};

} // namespace ingot::test
