// SPDX-License-Identifier: Apache-2.0
// For tests of the runtime's API: a logger that keeps its messages, engines of a few ops, and
// memory of the device under test: the CPU, or an emulated GPU.
#pragma once

#include "NvInferRuntime.h"
#include "api/real_gpu.h"
#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/backend.h"
#include "emulator/emulated_gpu.h"
#include "engine/engine.h"
#include "ingot.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::test {

class Logger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const nvinfer1::AsciiChar* msg) noexcept override {
        std::scoped_lock lock(mutex_);
        if (severity <= Severity::kERROR) {
            errors_.emplace_back(msg);
        } else {
            others_.emplace_back(msg);
        }
        if (severity == Severity::kINFO) {
            infos_.emplace_back(msg);
        }
    }
    /// The errors since the last call; "" without any.
    std::string take_error() {
        std::scoped_lock lock(mutex_);
        std::string all;
        for (const std::string& e : errors_) {
            all += (all.empty() ? "" : "\n") + e;
        }
        errors_.clear();
        return all;
    }
    /// Those at kINFO.
    std::vector<std::string> infos() {
        std::scoped_lock lock(mutex_);
        return infos_;
    }
    std::vector<std::string> others() {
        std::scoped_lock lock(mutex_);
        return others_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> errors_;
    std::vector<std::string> infos_;
    std::vector<std::string> others_;
};

/// Shared by all tests: getLogger() returns the first logger of the library.
inline Logger& shared_logger() {
    static Logger logger;
    return logger;
}

inline nvinfer1::Dims dims(std::initializer_list<int64_t> sizes) {
    nvinfer1::Dims d{};
    d.nbDims = static_cast<int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), d.d);
    return d;
}

inline std::vector<int64_t> sizes(const nvinfer1::Dims& d) {
    return d.nbDims < 0 ? std::vector<int64_t>{-1000} : std::vector<int64_t>(d.d, d.d + d.nbDims);
}

/// y = x + 1, z = x transposed and summed with itself; x is f32[N,2], N from 1 to 8.
inline std::shared_ptr<const Engine> two_results(bool with_profile = true,
                                                 const api::BuildSettings& settings = {}) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,2]"));
    g.set_origin("plus");
    g.add_output("y", ops::add(g, x, 1.0));
    g.set_origin("swap");
    Value t = ops::permute(g, x, {1, 0});
    g.add_output("z", ops::add(g, t, t));
    std::vector<Profile> profiles;
    if (with_profile) {
        profiles.push_back({{{"x", {1, 2}, {2, 2}, {8, 2}}}});
    }
    Properties properties;
    api::put_build_settings(settings, properties);
    return Engine::create(std::move(g), std::move(profiles), std::move(properties));
}

/// where: the indices of x that are not zero, data-dependent; twice = x + x.
inline std::shared_ptr<const Engine> data_decides() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[5]"));
    g.add_output("where",
                 ops::cast(g, g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {x}), DType::F32));
    g.add_output("twice", ops::add(g, x, x));
    return Engine::create(std::move(g), {}, {});
}

/// 256-byte aligned memory of the device under test, accessible to the host: the emulated GPU's;
/// for null the CUDA device's where the tests run on one, else the process's.
inline std::byte* allocate_memory(cuda::Gpu* gpu, size_t bytes) {
    size_t rounded = (bytes + 255) / 256 * 256;
    if (gpu != nullptr) {
        return gpu->allocate(static_cast<int64_t>(rounded));
    }
    return static_cast<std::byte*>(real::is_asked_for() ? real::Driver::get().allocate(rounded)
                                                        : std::aligned_alloc(256, rounded));
}

inline void release_memory(cuda::Gpu* gpu, void* p) {
    if (gpu != nullptr) {
        gpu->release(static_cast<std::byte*>(p));
    } else {
        real::is_asked_for() ? real::Driver::get().release(p) : std::free(p);
    }
}

/// Memory of the device under test; freed at the end.
class DeviceMemory {
public:
    explicit DeviceMemory(cuda::Gpu* gpu) : gpu_(gpu) {}
    ~DeviceMemory() {
        for (std::byte* p : blocks_) {
            release_memory(gpu_, p);
        }
    }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    void* allocate(int64_t bytes) {
        auto size = static_cast<size_t>(bytes + 256);
        std::scoped_lock lock(mutex_);
        blocks_.push_back(allocate_memory(gpu_, size));
        std::memset(blocks_.back(), 0xCB, size);
        return blocks_.back();
    }
    float* floats(const std::vector<float>& values) {
        auto bytes = values.size() * sizeof(float);
        void* p = allocate(static_cast<int64_t>(bytes));
        std::memcpy(p, values.data(), bytes);
        return static_cast<float*>(p);
    }

private:
    cuda::Gpu* gpu_;
    std::mutex mutex_;
    std::vector<std::byte*> blocks_;
};

/// Waits for the device, where it does not run at once.
inline void synchronize() {
    if (real::is_asked_for()) {
        real::Driver::get().synchronize();
    }
}

inline std::vector<float> values_at(const void* p, size_t count) {
    std::vector<float> v(count);
    if (real::is_asked_for()) {
        real::Driver::get().read(v.data(), p, count * sizeof(float));
    } else {
        std::memcpy(v.data(), p, count * sizeof(float));
    }
    return v;
}

/// Memory of the device under test that the host can use, too.
class HostVisible : public nvinfer1::IGpuAllocator {
public:
    void* allocateAsync(const uint64_t size, const uint64_t, const nvinfer1::AllocatorFlags,
                        cudaStream_t) noexcept override {
        return allocate_memory(nullptr, size);
    }
    bool deallocateAsync(void* const p, cudaStream_t) noexcept override {
        release_memory(nullptr, p);
        return true;
    }
};

/// A runtime on the CPU (false) or a GPU (true), which is emulated unless the tests run on a
/// device.
class RuntimeTest : public testing::TestWithParam<bool> {
protected:
    RuntimeTest() {
        logger.take_error();
        if (GetParam() && !real::is_asked_for()) {
            gpu = std::make_unique<emulator::EmulatedGpu>(90);
            backend = cuda::make_backend(*gpu);
            api::set_gpu(backend.get());
        }
        ingot::setCacheFolder("");
        memory = std::make_unique<DeviceMemory>(gpu.get());
        runtime.reset(nvinfer1::createInferRuntime(logger));
        EXPECT_TRUE(ingot::setDevice(*runtime, GetParam() ? Device::kGPU : Device::kCPU));
    }
    ~RuntimeTest() override {
        api::set_gpu(nullptr);
        ingot::setCacheFolder(nullptr);
    }

    std::unique_ptr<nvinfer1::ICudaEngine> load(const Engine& engine) {
        AlignedBytes bytes = engine_bytes(engine);
        return load(bytes);
    }
    std::unique_ptr<nvinfer1::ICudaEngine> load(const AlignedBytes& bytes) {
        return std::unique_ptr<nvinfer1::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    }
    static std::unique_ptr<nvinfer1::IExecutionContext> context(nvinfer1::ICudaEngine& engine) {
        return std::unique_ptr<nvinfer1::IExecutionContext>(engine.createExecutionContext());
    }

    /// A stream of the caller's, never null.
    cudaStream_t stream() {
        if (stream_ == nullptr) {
            stream_ = real::is_asked_for() ? real::Driver::get().create_stream() : this;
        }
        return reinterpret_cast<cudaStream_t>(stream_);
    }
    void begin_capture() {
        gpu != nullptr ? gpu->begin_capture(stream()) : real::Driver::get().begin_capture(stream());
    }
    std::function<void()> end_capture() {
        return gpu != nullptr ? gpu->end_capture() : real::Driver::get().end_capture(stream());
    }

    std::unique_ptr<emulator::EmulatedGpu> gpu; // null on the CPU and on a device
    std::unique_ptr<Backend> backend;
    std::unique_ptr<DeviceMemory> memory;
    Logger& logger = shared_logger();
    std::unique_ptr<nvinfer1::IRuntime> runtime;

private:
    void* stream_ = nullptr;
};

} // namespace ingot::test
