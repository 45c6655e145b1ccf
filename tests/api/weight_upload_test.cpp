// SPDX-License-Identifier: Apache-2.0
// Weights reach the GPU when an engine is deserialised: there the errors are, and the memory is
// counted.
#include "api/effects.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/backend.h"
#include "backends_cuda/fake_driver.h"
#include "ops/ops.h"

#include <regex>

namespace ingot::test {

namespace {

constexpr int64_t rows = 1024;
constexpr int64_t weight_bytes = rows * rows * 4;

AlignedBytes large_engine() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[2,1024]"));
    Tensor w = Tensor::empty(DType::F32, {rows, rows});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, static_cast<double>(i % 5) * 0.125);
    }
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    return engine_bytes(*Engine::create(std::move(g), {}, {}));
}

class WeightUpload : public testing::Test {
public:
    WeightUpload() {
        ingot::setCacheFolder("");
        runtime.reset(nvinfer1::createInferRuntime(lines));
        use(int64_t{1} << 30);
    }
    ~WeightUpload() override {
        runtime.reset();
        api::set_gpu(nullptr);
        ingot::setCacheFolder(nullptr);
        backend_.reset();
        gpu_.reset();
        EXPECT_EQ(fake::alive(), "");
    }

protected:
    /// A GPU with that much memory from here on.
    void use(int64_t memory) {
        api::set_gpu(nullptr);
        backend_.reset();
        gpu_.reset();
        fake::reset(memory);
        gpu_ = fake::make_gpu();
        backend_ = cuda::make_backend(*gpu_, 1);
        api::set_gpu(backend_.get());
        ingot::setDevice(*runtime, Device::kGPU);
    }
    int64_t used() const {
        DeviceMemoryInfo m = backend_->memory();
        return m.total - m.free;
    }
    std::unique_ptr<nvinfer1::ICudaEngine> load() {
        return std::unique_ptr<nvinfer1::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes_.data(), bytes_.size()));
    }
    std::string line(const std::string& pattern) const {
        for (const auto& [severity, text] : lines.all) {
            if (std::regex_search(text, std::regex(pattern))) {
                return text;
            }
        }
        return "";
    }

    Lines lines;
    std::unique_ptr<nvinfer1::IRuntime> runtime;

private:
    AlignedBytes bytes_ = large_engine();
    std::unique_ptr<cuda::Gpu> gpu_;
    std::unique_ptr<Backend> backend_;
};

TEST_F(WeightUpload, HappensAtDeserialisationAndContextsShareIt) {
    int64_t before = used();
    auto engine = load();
    ASSERT_NE(engine, nullptr);
    int64_t loaded = used() - before;
    EXPECT_GE(loaded, weight_bytes);
    EXPECT_NE(line("\\[MemUsageChange\\] Engine deserialization: CPU .*, GPU \\+[1-9]"), "");
    std::unique_ptr<nvinfer1::IExecutionContext> first(engine->createExecutionContext());
    // Options of its own: kernels are other ones, weights the same.
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    std::unique_ptr<nvinfer1::IRuntimeCache> cache(config->createRuntimeCache());
    EXPECT_TRUE(config->setRuntimeCache(*cache));
    std::unique_ptr<nvinfer1::IExecutionContext> second(
        engine->createExecutionContext(config.get()));
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_LT(used() - before - loaded, weight_bytes);
    first.reset();
    second.reset();
    config.reset();
    engine.reset();
    EXPECT_EQ(used(), before);
}

/// Engines of their own, from bytes of their own.
TEST_F(WeightUpload, EnginesOfEqualWeightsHoldThemOnce) {
    int64_t before = used();
    std::vector<std::unique_ptr<nvinfer1::ICudaEngine>> engines;
    std::vector<std::unique_ptr<nvinfer1::IExecutionContext>> contexts;
    for (int i = 0; i < 4; ++i) {
        engines.push_back(load());
        ASSERT_NE(engines.back(), nullptr);
        contexts.emplace_back(engines.back()->createExecutionContext());
        ASSERT_NE(contexts.back(), nullptr);
    }
    EXPECT_GE(used() - before, weight_bytes);
    EXPECT_LT(used() - before, 2 * weight_bytes);
    contexts.clear();
    engines.erase(engines.begin(), engines.begin() + 3);
    EXPECT_GE(used() - before, weight_bytes) << "the last engine has them";
    engines.clear();
    EXPECT_EQ(used(), before);
}

TEST_F(WeightUpload, TooLittleMemoryIsAnErrorThere) {
    use(weight_bytes / 2);
    EXPECT_EQ(load(), nullptr);
    EXPECT_NE(line("IRuntime::deserializeCudaEngine: the GPU has no 4194304 bytes left"), "")
        << lines.all.back().second;
}

TEST_F(WeightUpload, WaitsForWeightsThatAreLoadedLater) {
    AlignedBytes bytes = large_engine();
    runtime->setDeferredWeightsLoading(true);
    int64_t before = used();
    auto engine = load();
    ASSERT_NE(engine, nullptr);
    EXPECT_LT(used() - before, weight_bytes);
    EXPECT_TRUE(engine->loadWeights(bytes.data(), static_cast<int64_t>(bytes.size())));
    EXPECT_GE(used() - before, weight_bytes);
    EXPECT_TRUE(engine->unloadWeights());
    EXPECT_LT(used() - before, weight_bytes);
}

} // namespace

} // namespace ingot::test
