// SPDX-License-Identifier: Apache-2.0
// For tests of threads: callbacks of an application, small engines, and eight threads that start
// together. Shared objects here avoid locks: a lock orders threads, and ThreadSanitizer then takes
// their work in the library for ordered too.
#pragma once

#include "NvInfer.h"
#include "NvInferRuntime.h"
#include "NvOnnxParser.h"
#include "ingot.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {

namespace nv = nvinfer1;

constexpr int thread_count = 8;
constexpr int64_t width = 48; // weights of which are large enough to be streamed

/// Keeps the last error.
class Logger : public nv::ILogger {
public:
    void log(Severity severity, const nv::AsciiChar* msg) noexcept override {
        lines_.fetch_add(1, std::memory_order_relaxed);
        if (severity <= Severity::kERROR) {
            std::scoped_lock lock(mutex_);
            error_ = msg;
        }
    }
    std::string take_error() {
        std::scoped_lock lock(mutex_);
        return std::exchange(error_, "");
    }

private:
    std::atomic<int64_t> lines_{0};
    std::mutex mutex_;
    std::string error_;
};

/// Shared by all tests: getLogger() returns the first logger of the library.
inline Logger& logger() {
    static Logger one;
    return one;
}

class Recorder : public nv::IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return errors; }
    nv::ErrorCode getErrorCode(int32_t) const noexcept override { return nv::ErrorCode::kSUCCESS; }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { errors = 0; }
    bool reportError(nv::ErrorCode, ErrorDesc) noexcept override {
        errors.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    RefCount incRefCount() noexcept override {
        return references.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    RefCount decRefCount() noexcept override {
        return references.fetch_sub(1, std::memory_order_relaxed) - 1;
    }
    std::atomic<int32_t> errors{0};
    std::atomic<int32_t> references{0};
};

class Allocator : public nv::IGpuAllocator {
public:
    void* allocateAsync(const uint64_t size, const uint64_t alignment, const nv::AllocatorFlags,
                        cudaStream_t) noexcept override {
        live.fetch_add(1, std::memory_order_relaxed);
        return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        live.fetch_sub(1, std::memory_order_relaxed);
        std::free(memory);
        return true;
    }
    std::atomic<int64_t> live{0};
};

inline nv::Dims dims(std::initializer_list<int64_t> sizes) {
    nv::Dims d{};
    d.nbDims = static_cast<int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), d.d);
    return d;
}

/// y = x * w, w[i][j] = factor where i == j; x is [N, width], N from 1 to 4, in the second profile
/// up to 2.
class Product {
public:
    Product(nv::IBuilder& builder, float factor) : w_(width * width, 0.0F) {
        network.reset(builder.createNetworkV2(0));
        config.reset(builder.createBuilderConfig());
        for (int64_t i = 0; i < width; ++i) {
            w_[static_cast<size_t>(i * width + i)] = factor;
        }
        nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({-1, width}));
        nv::IConstantLayer* c = network->addConstant(dims({width, width}), weights());
        c->setName("w");
        nv::ILayer* product = network->addMatrixMultiply(
            *x, nv::MatrixOperation::kNONE, *c->getOutput(0), nv::MatrixOperation::kNONE);
        product->getOutput(0)->setName("y");
        network->markOutput(*product->getOutput(0));
        for (int64_t most : {4, 2}) {
            nv::IOptimizationProfile* p = builder.createOptimizationProfile();
            p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1, width}));
            p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2, width}));
            p->setDimensions("x", nv::OptProfileSelector::kMAX, dims({most, width}));
            config->addOptimizationProfile(p);
        }
    }
    nv::Weights weights() const { return {nv::DataType::kFLOAT, w_.data(), width * width}; }
    std::unique_ptr<nv::IHostMemory> build(nv::IBuilder& builder) const {
        return std::unique_ptr<nv::IHostMemory>(builder.buildSerializedNetwork(*network, *config));
    }

    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nv::IBuilderConfig> config;

private:
    std::vector<float> w_;
};

inline std::unique_ptr<nv::IHostMemory> build(nv::IBuilder& builder, float factor,
                                              const nv::ITimingCache* timings = nullptr) {
    Product p(builder, factor);
    if (timings != nullptr) {
        p.config->setTimingCache(*timings, false);
    }
    return p.build(builder);
}

inline std::unique_ptr<nv::IRuntime> cpu_runtime() {
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger()));
    ingot::setDevice(*runtime, Device::kCPU);
    return runtime;
}

inline std::unique_ptr<nv::ICudaEngine> load(nv::IRuntime& runtime, const nv::IHostMemory& bytes) {
    return std::unique_ptr<nv::ICudaEngine>(
        runtime.deserializeCudaEngine(bytes.data(), bytes.size()));
}

/// One run of a Product. Without `factor` results are not checked.
inline void run(nv::IExecutionContext& c, int64_t rows, std::optional<float> factor) {
    alignas(256) std::array<float, 4 * width> x{};
    alignas(256) std::array<float, 4 * width> y{};
    x.fill(static_cast<float>(rows));
    ASSERT_TRUE(c.setInputShape("x", dims({rows, width}))) << logger().take_error();
    ASSERT_TRUE(c.setTensorAddress("x", x.data()));
    ASSERT_TRUE(c.setTensorAddress("y", y.data()));
    ASSERT_TRUE(c.enqueueV3(nullptr)) << logger().take_error();
    for (int64_t i = 0; factor && i < rows * width; ++i) {
        ASSERT_EQ(y[static_cast<size_t>(i)], *factor * static_cast<float>(rows));
    }
}

/// Calls f(0..7), each in a thread of its own; all start together.
inline void in_threads(const std::function<void(int)>& f) {
    std::latch start(thread_count);
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
        threads.emplace_back([&f, &start, t] {
            start.arrive_and_wait();
            f(t);
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
}

class Threads : public testing::Test {
protected:
    Threads() { ingot::setCacheFolder(""); }
    ~Threads() override { ingot::setCacheFolder(nullptr); }
};

} // namespace ingot::test
