// SPDX-License-Identifier: Apache-2.0
// A program that draws, beside inference on the same GPU: a frame is due at a fixed rate, and is
// lost when the GPU misses its deadline. Low-priority inference loses hardly a frame compared with
// urgent inference.
#include "backends/backends.h"
#include "backends/cuda/driver/device_context.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "engine/engine.h"
#include "gpu/engines.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace ingot::test {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks that only take time, and enough shared memory that few others fit beside them.
constexpr const char* frame_text = R"(
extern "C" __global__ void frame(unsigned long long cycles) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    } while (now - start < cycles);
}
)";
constexpr int64_t frame_shared = 100 << 10;
constexpr int frames_per_second = 240;
constexpr std::chrono::duration<double> period{1.0 / frames_per_second};
constexpr int due = 4 * frames_per_second; // 4 seconds

cuda::Gpu& device() {
    std::string why;
    cuda::Gpu* gpu = cuda::find_gpu(0, why);
    require(gpu != nullptr, ErrorCode::Unsupported, "INGOT_TEST_GPU is set, but ", why);
    return *gpu;
}

/// With the device's context current to this thread, as an application has it.
const cuda::Driver& driver() {
    std::string why;
    const cuda::Driver* found = cuda::find_driver(why);
    require(found != nullptr, ErrorCode::Unsupported, why);
    thread_local std::unique_ptr<cuda::Stream> any = device().create_stream();
    any->parts().order->native();
    return *found;
}

/// Draws on a stream of normal priority: about 0.8 ms on an idle GPU, in blocks of 10 microseconds.
class Frames {
public:
    Frames()
        : function_(device().load(device().compile(frame_text), "frame", frame_shared)),
          stream_(device().create_stream()) {
        constexpr uint32_t waves = 80;
        shape_.grid = {2 * static_cast<uint32_t>(device().arch().sms) * waves, 1, 1};
        shape_.block = 1024;
        shape_.shared = frame_shared;
    }
    /// Milliseconds from when the GPU could have begun it until it was drawn.
    double draw() {
        plan::DeviceClock& clock = *stream_->parts().clock;
        clock.forget();
        uint64_t cycles = 15000;
        void* parameters[] = {&cycles};
        int begin = clock.mark();
        stream_->launch(*function_, shape_, parameters);
        int end = clock.mark();
        stream_->synchronize();
        return clock.elapsed_ms(begin, end);
    }
    /// Draws each frame when it is due; returns the number that missed the deadline. A late frame
    /// delays the next ones, which are skipped.
    int lost(double deadline_ms) {
        auto start = Clock::now();
        auto end = start + due * period;
        int in_time = 0;
        for (int next = 0; next < due && Clock::now() < end;) {
            std::this_thread::sleep_until(start + next * period);
            in_time += draw() <= deadline_ms ? 1 : 0;
            std::chrono::duration<double> now = Clock::now() - start;
            next = std::max(next + 1, static_cast<int>(now / period));
        }
        return due - in_time;
    }

private:
    std::shared_ptr<const cuda::Function> function_;
    std::unique_ptr<cuda::Stream> stream_;
    cuda::LaunchShape shape_;
};

constexpr int64_t side = 4096;

/// Products that each fill the GPU for a few tenths of a millisecond.
std::shared_ptr<const Engine> products() {
    Graph g;
    Value y = g.add_input("x", Type{DType::F16, {Dim(side), Dim(side)}});
    Value w = ops::constant(g, Tensor::zeros(DType::F16, {side, side}));
    for (int i = 0; i < 12; ++i) {
        y = ops::maximum(g, ops::matmul(g, y, w), 0.0);
    }
    g.add_output("y", y);
    return Engine::create(g, {}, {});
}

/// Runs one after the other, with more of them always waiting in the queue, until it goes.
class Inference {
public:
    /// On the default stream where `caller` is null.
    Inference(const std::shared_ptr<const Engine>& engine, RunPriority priority, void* caller)
        : context_(engine, gpu_backend(), options(priority)), caller_(caller) {
        for (cuda::CUevent& e : ended_) {
            EXPECT_EQ(driver().event_create(&e, cuda::event_without_timing), 0);
        }
        for (int run = 0; run < 3; ++run) { // compiles, records, repeats
            enqueue();
        }
        wait();
        thread_ = std::thread([this] {
            while (!stop_) {
                enqueue();
            }
        });
    }
    ~Inference() {
        stop_ = true;
        thread_.join();
        wait();
        for (cuda::CUevent e : ended_) {
            driver().event_destroy(e);
        }
        for (std::byte* p : memory_) {
            gpu_backend().release(p);
        }
    }
    Inference(const Inference&) = delete;
    Inference& operator=(const Inference&) = delete;
    int64_t runs() const { return runs_; }

private:
    static CompileOptions options(RunPriority priority) {
        CompileOptions o = gpu_options();
        o.of<CudaOptions>().priority = priority;
        return o;
    }
    /// Waits until hardly more than two others are left: the GPU is never idle.
    void enqueue() {
        Status s = context_.execution().enqueue(in_, out_, caller_, {});
        EXPECT_TRUE(s.ok()) << context_.execution().error();
        auto run = static_cast<size_t>(runs_++);
        auto* stream = static_cast<cuda::CUstream>(caller_);
        EXPECT_EQ(driver().event_record(ended_[run % ended_.size()], stream), 0);
        EXPECT_EQ(driver().event_synchronize(ended_[(run + 1) % ended_.size()]), 0);
    }
    void wait() { EXPECT_TRUE(context_.execution().wait().ok()) << context_.execution().error(); }
    std::byte* allocate() {
        memory_.push_back(gpu_backend().allocate(side * side * 2));
        return memory_.back();
    }

    Context context_;
    void* caller_;
    std::array<cuda::CUevent, 3> ended_{}; // of the last runs
    std::vector<std::byte*> memory_;
    std::vector<Binding> in_ = {{allocate(), {side, side}}};
    std::vector<Binding> out_ = {{allocate(), {}}};
    std::atomic<bool> stop_{false};
    std::atomic<int64_t> runs_{0};
    std::thread thread_;
};

/// A stream as an application makes it.
class CallersStream {
public:
    explicit CallersStream(int priority) {
        EXPECT_EQ(driver().stream_create(&stream_, cuda::stream_non_blocking, priority), 0);
    }
    ~CallersStream() { driver().stream_destroy(stream_); }
    CallersStream(const CallersStream&) = delete;
    CallersStream& operator=(const CallersStream&) = delete;
    void* get() const { return stream_; }

private:
    cuda::CUstream stream_ = nullptr;
};

class FramesBesideInference : public testing::Test {
protected:
    void SetUp() override {
        if (!on_device()) {
            GTEST_SKIP() << "frames are lost on a device only: INGOT_TEST_GPU=1";
        }
        frames = std::make_unique<Frames>();
        engine = products();
        std::vector<double> alone;
        for (int i = 0; i < 50; ++i) {
            alone.push_back(frames->draw());
        }
        std::nth_element(alone.begin(), alone.begin() + 25, alone.end());
        alone_ms = alone[25];
        // Waiting for a few kernels of others is allowed, up to the next frame.
        deadline_ms = std::max(alone_ms + 2, 2 * alone_ms);
        ASSERT_LT(deadline_ms, 1000.0 / frames_per_second) << "a frame takes " << alone_ms << " ms";
    }
    /// A tenth of the frames must be lost to urgent work, else nothing is shown.
    void judge(const std::string& name, int idle, int low, int normal, int high) {
        report(str("priority.", name), str("frames=", due, " frame_ms=", alone_ms, " deadline_ms=",
                                           deadline_ms, " lost_idle=", idle, " lost_low=", low,
                                           " lost_normal=", normal, " lost_high=", high));
        EXPECT_LE(100 * idle, due) << "frames are lost without any inference";
        EXPECT_GE(10 * high, due) << "urgent inference takes no frames: nothing is shown";
        EXPECT_LE(100 * low, high) << "inference that gives way costs frames";
    }
    int lost(RunPriority priority, void* stream) {
        Inference inference(engine, priority, stream);
        int64_t before = inference.runs();
        int n = frames->lost(deadline_ms);
        EXPECT_GT(inference.runs(), before + 10) << "there was no inference";
        return n;
    }

    std::unique_ptr<Frames> frames;
    std::shared_ptr<const Engine> engine;
    double alone_ms = 0;
    double deadline_ms = 0;
};

TEST_F(FramesBesideInference, GiveWayByOptions) {
    int idle = frames->lost(deadline_ms);
    int low = lost(RunPriority::Low, nullptr);
    int normal = lost(RunPriority::Normal, nullptr);
    int high = lost(RunPriority::High, nullptr);
    judge("options", idle, low, normal, high);
}

// The stream decides, whatever the options say.
TEST_F(FramesBesideInference, GiveWayByTheCallersStream) {
    constexpr int most_urgent = -100; // the driver takes its own limit
    CallersStream relaxed(0);
    CallersStream urgent(most_urgent);
    int idle = frames->lost(deadline_ms);
    int low = lost(RunPriority::High, relaxed.get());
    int normal = lost(RunPriority::Normal, relaxed.get());
    int high = lost(RunPriority::Low, urgent.get());
    judge("caller", idle, low, normal, high);
}

TEST(FrameKernel, Compiles) {
    std::string version = kernel_compiler();
    if (version.empty()) {
        GTEST_SKIP() << "there is no NVRTC here";
    }
    EXPECT_FALSE(
        cuda::nvrtc_compile(frame_text, std::string(kernels::arch_of(90).nvrtc)).cubin.empty());
}

} // namespace
} // namespace ingot::test
