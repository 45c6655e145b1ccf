// SPDX-License-Identifier: Apache-2.0
// For tests of memory use: a logger that allocates nothing, a small engine, and a runtime on the
// CPU backend or on a GPU with a counting driver and kernels that do nothing.
#pragma once

#include "NvInfer.h"
#include "api/runtime_fixture.h"
#include "api/tensorrt/runtime/place.h"
#include "backends_cuda/fake_driver.h"
#include "base/allocation_count.h"

#include <array>
#include <thread>

namespace ingot::test {

// Sanitizers delay the release of freed memory, and under one of them nothing is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// Keeps the first error, and allocates nothing.
class FixedLogger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const nvinfer1::AsciiChar* msg) noexcept override {
        if (severity <= Severity::kERROR && text_[0] == 0) {
            std::strncpy(text_.data(), msg, text_.size() - 1);
        }
    }
    std::string take_error() {
        std::string text = text_.data();
        text_.fill(0);
        return text;
    }
    bool has_error() const { return text_[0] != 0; }

private:
    std::array<char, 1024> text_{};
};

inline Value weights(Graph& g, Shape shape) {
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>(i % 5) * 0.125);
    }
    return ops::constant(g, t);
}

/// A product, an epilogue and two softmaxes.
inline AlignedBytes small_engine() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[2,16]"));
    Value h = ops::unary(g, ExprOp::Abs, ops::matmul(g, x, weights(g, {16, 8})));
    Value s = ops::softmax(g, h, 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, s, {1, 0}), 1));
    return engine_bytes(*Engine::create(std::move(g), {}, {}));
}

class MemoryBalance : public testing::TestWithParam<bool> {
public:
    MemoryBalance() {
        if (GetParam()) {
            fake::reset();
            gpu_ = fake::make_gpu();
            backend_ = cuda::make_backend(*gpu_, 1);
            api::set_gpu(backend_.get());
        }
        ingot::setCacheFolder("");
        runtime.reset(nvinfer1::createInferRuntime(logger));
        ingot::setDevice(*runtime, GetParam() ? Device::kGPU : Device::kCPU);
    }
    ~MemoryBalance() override {
        runtime.reset();
        api::set_gpu(nullptr);
        ingot::setCacheFolder(nullptr);
        backend_.reset();
        gpu_.reset();
        if (GetParam()) {
            EXPECT_EQ(fake::alive(), "");
        }
    }

protected:
    static std::string alive_on_device() { return GetParam() ? fake::alive() : ""; }

    /// Two runs of a new context. False when something failed.
    bool run_once(nvinfer1::ICudaEngine& engine) {
        std::unique_ptr<nvinfer1::IExecutionContext> c(engine.createExecutionContext());
        return c != nullptr && run_twice(*c);
    }
    bool run_twice(nvinfer1::IExecutionContext& c) {
        return c.setInputShape("x", dims({2, 16})) && c.setTensorAddress("x", x_.data()) &&
               c.setTensorAddress("y", y_.data()) && c.enqueueV3(nullptr) && c.enqueueV3(nullptr);
    }

    FixedLogger logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime;

private:
    std::unique_ptr<cuda::Gpu> gpu_;
    std::unique_ptr<Backend> backend_;
    alignas(256) std::array<float, 128> x_{};
    alignas(256) std::array<float, 128> y_{};
};

/// The live allocations once no thread works any more.
inline int64_t settled_allocations() {
    int64_t least = live_allocations();
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        least = std::min(least, live_allocations());
    }
    return least;
}

} // namespace ingot::test
