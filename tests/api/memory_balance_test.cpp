// SPDX-License-Identifier: Apache-2.0
// Memory comes back: ten thousand contexts, and every allocation failing in turn, of the device and
// of the host. On the CPU backend and on a GPU whose driver counts and whose kernels do nothing.
#include "NvInfer.h"
#include "api/runtime_fixture.h"
#include "api/tensorrt/runtime/place.h"
#include "backends_cuda/fake_driver.h"
#include "base/allocation_count.h"

#include <malloc.h>

#include <array>
#include <functional>
#include <thread>

namespace ingot::test {
namespace {

// Sanitizers keep what was freed for a while, and under one of them nothing is counted.
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

Value weights(Graph& g, Shape shape) {
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>(i % 5) * 0.125);
    }
    return ops::constant(g, t);
}

/// A product, an epilogue and two softmaxes.
AlignedBytes small_engine() {
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
        return c != nullptr && c->setInputShape("x", dims({2, 16})) &&
               c->setTensorAddress("x", x_.data()) && c->setTensorAddress("y", y_.data()) &&
               c->enqueueV3(nullptr) && c->enqueueV3(nullptr);
    }

    FixedLogger logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime;

private:
    std::unique_ptr<cuda::Gpu> gpu_;
    std::unique_ptr<Backend> backend_;
    alignas(256) std::array<float, 128> x_{};
    alignas(256) std::array<float, 128> y_{};
};

/// What is held once no thread works on anything any more.
int64_t settled_allocations() {
    int64_t least = live_allocations();
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        least = std::min(least, live_allocations());
    }
    return least;
}

TEST_P(MemoryBalance, TenThousandContextsLeaveNothing) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    }
    int64_t blocks = settled_allocations();
    std::string device = alive_on_device();
    size_t heap = mallinfo2().uordblks;
    int contexts = sanitized ? 200 : 10000;
    for (int i = 0; i < contexts; ++i) {
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    }
    // A leak is one block of each context; what GPUs cache by address grows to a bound.
    EXPECT_LT(settled_allocations() - blocks, GetParam() ? contexts / 20 : 1);
    EXPECT_EQ(alive_on_device(), device);
    if (!sanitized) {
        // What C libraries allocate besides: less than 4 bytes a context.
        EXPECT_LT(static_cast<int64_t>(mallinfo2().uordblks) - static_cast<int64_t>(heap), 40000);
    }
}

TEST_P(MemoryBalance, EnginesLeaveNothing) {
    AlignedBytes bytes = small_engine();
    auto once = [&] {
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    };
    for (int i = 0; i < 10; ++i) {
        once();
    }
    int64_t blocks = settled_allocations();
    std::string device = alive_on_device();
    int engines = sanitized || GetParam() ? 40 : 300;
    for (int i = 0; i < engines; ++i) {
        once();
    }
    EXPECT_LT(settled_allocations() - blocks, GetParam() ? engines : 1);
    EXPECT_EQ(alive_on_device(), device);
}

TEST_P(MemoryBalance, RunsAllocateNothing) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer has its own operator new";
    }
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext());
    alignas(256) std::array<float, 128> x{};
    alignas(256) std::array<float, 128> y{};
    ASSERT_TRUE(c->setInputShape("x", dims({2, 16})));
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    }
    settled_allocations(); // kernels arrive
    int64_t count = allocation_count();
    size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    }
    if (!GetParam()) { // the driver that counts allocates itself
        EXPECT_EQ(allocation_count(), count);
    }
    EXPECT_LE(mallinfo2().uordblks, heap);
}

/// Whether one call of `f`, whose n-th allocation of `least` bytes or more fails, keeps to the
/// rules of each_allocation_fails; `held` gets the blocks that it leaves behind.
bool fails_once(FixedLogger& logger, const std::function<bool()>& f, int64_t n, size_t least,
                bool& failed, int64_t& held) {
    int64_t blocks = live_allocations();
    fail_allocation(n, least);
    bool ok = f();
    failed = allocation_failed();
    fail_allocation(0);
    std::string error = logger.take_error();
    bool told = error.find("memory") != std::string::npos || error.find("bytes") != error.npos;
    EXPECT_TRUE(ok ? error.empty() : told) << "allocation " << n << ": " << error;
    std::string().swap(error);
    held = live_allocations() - blocks;
    if (held != 0) {
        held = settled_allocations() - blocks;
    }
    return ok;
}

/// Calls `f` with the first allocation of this thread failing, then the second, and so on, until
/// none fails; those of `least` bytes or more. Where one did, f either succeeds all the same or
/// fails with an error; either way nothing stays behind: what does the first time is kept for all.
void each_allocation_fails(FixedLogger& logger, const std::function<bool()>& f, size_t least = 0) {
    ASSERT_TRUE(f()) << logger.take_error(); // what is made once
    bool failed = true;
    int64_t refused = 0;
    for (int64_t n = 1; failed; ++n) {
        int64_t held = 1;
        for (int i = 0; i < 3 && held > 0; ++i) {
            refused += fails_once(logger, f, n, least, failed, held) ? 0 : 1;
        }
        ASSERT_LE(held, 0) << "allocation " << n;
    }
    EXPECT_GT(refused, 5);
    ASSERT_TRUE(f()) << logger.take_error();
}

/// More than a JSON value of ours asks for when it is destroyed: its library ends the program where
/// that fails.
constexpr size_t json_bytes = 512;

TEST_P(MemoryBalance, TheNthHostAllocationFailsWhileLoading) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer has its own operator new";
    }
    AlignedBytes bytes = small_engine();
    each_allocation_fails(
        logger,
        [&] {
            std::unique_ptr<nvinfer1::ICudaEngine> engine(
                runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
            return engine != nullptr;
        },
        json_bytes);
}

TEST_P(MemoryBalance, TheNthHostAllocationFailsWhileRunning) {
    if (sanitized || GetParam()) {
        GTEST_SKIP() << "a sanitizer has its own operator new, and the driver that counts needs it";
    }
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    each_allocation_fails(logger, [&] { return run_once(*engine); });
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryBalance, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

TEST(MemoryOfBuilds, TheNthHostAllocationFails) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer has its own operator new";
    }
    FixedLogger logger;
    std::array<float, 128> w{};
    auto build = [&] {
        std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
        if (builder == nullptr) {
            return false;
        }
        std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
        std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
        if (network == nullptr || config == nullptr) {
            return false;
        }
        nvinfer1::ITensor* x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims({2, 16}));
        nvinfer1::IConstantLayer* c =
            network->addConstant(dims({16, 8}), {nvinfer1::DataType::kFLOAT, w.data(), 128});
        if (x == nullptr || c == nullptr) {
            return false;
        }
        nvinfer1::ILayer* product =
            network->addMatrixMultiply(*x, nvinfer1::MatrixOperation::kNONE, *c->getOutput(0),
                                       nvinfer1::MatrixOperation::kNONE);
        nvinfer1::ILayer* soft =
            product == nullptr ? nullptr : network->addSoftMax(*product->getOutput(0));
        if (soft == nullptr) {
            return false;
        }
        network->markOutput(*soft->getOutput(0));
        std::unique_ptr<nvinfer1::IHostMemory> bytes;
        if (!logger.has_error()) { // a mark that failed is no output
            bytes.reset(builder->buildSerializedNetwork(*network, *config));
        }
        return bytes != nullptr;
    };
    each_allocation_fails(logger, build, json_bytes);
}

} // namespace
} // namespace ingot::test
