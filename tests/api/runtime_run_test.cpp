// SPDX-License-Identifier: Apache-2.0
// From bytes to results: shapes, addresses, allocators, executeV2, on the CPU and an emulated GPU.
#include "api/runtime_fixture.h"
#include "base/allocation_count.h"
#include "source_dir.h"
#include "workflow/build.h"
#include "workflow/inputs/npy.h"

#include <map>

namespace ingot::test {
namespace {

using nvinfer1::DataType;
using nvinfer1::TensorIOMode;

class RuntimeRun : public RuntimeTest {};

TEST_P(RuntimeRun, EnqueueGivesTheRightAnswer) {
    auto engine = load(*two_results());
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_EQ(ingot::getDevice(*engine), GetParam() ? Device::kGPU : Device::kCPU);
    auto c = context(*engine);
    ASSERT_NE(c, nullptr) << logger.take_error();
    float* x = memory->floats({1, 2, 3, 4, 5, 6});
    void* y = memory->allocate(24);
    void* z = memory->allocate(24);
    EXPECT_TRUE(c->setInputShape("x", dims({3, 2})));
    EXPECT_EQ(sizes(c->getTensorShape("z")), (std::vector<int64_t>{2, 3}));
    EXPECT_TRUE(c->setInputTensorAddress("x", x));
    EXPECT_TRUE(c->setTensorAddress("y", y));
    EXPECT_TRUE(c->setOutputTensorAddress("z", z));
    for (int run = 0; run < 4; ++run) {
        std::memset(y, 0, 24);
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        EXPECT_EQ(values_at(y, 6), (std::vector<float>{2, 3, 4, 5, 6, 7}));
        EXPECT_EQ(values_at(z, 6), (std::vector<float>{2, 6, 10, 4, 8, 12}));
    }
    EXPECT_EQ(c->getTensorAddress("x"), x);
    EXPECT_EQ(c->getOutputTensorAddress("y"), y);
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(RuntimeRun, WhatTheEngineTells) {
    api::BuildSettings settings;
    settings.name = "two";
    auto engine = load(*two_results(true, settings));
    EXPECT_STREQ(engine->getName(), "two");
    ASSERT_EQ(engine->getNbIOTensors(), 3);
    EXPECT_STREQ(engine->getIOTensorName(0), "x");
    EXPECT_STREQ(engine->getIOTensorName(2), "z");
    EXPECT_EQ(engine->getTensorIOMode("x"), TensorIOMode::kINPUT);
    EXPECT_EQ(engine->getTensorIOMode("y"), TensorIOMode::kOUTPUT);
    EXPECT_EQ(sizes(engine->getTensorShape("x")), (std::vector<int64_t>{-1, 2}));
    EXPECT_EQ(sizes(engine->getTensorShape("z")), (std::vector<int64_t>{2, -1}));
    EXPECT_EQ(engine->getTensorDataType("z"), DataType::kFLOAT);
    EXPECT_EQ(engine->getTensorFormat("x"), nvinfer1::TensorFormat::kLINEAR);
    EXPECT_STREQ(engine->getTensorFormatDesc("x"), "FLOAT, row major");
    EXPECT_EQ(engine->getTensorVectorizedDim("x"), -1);
    EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
    using nvinfer1::OptProfileSelector;
    EXPECT_EQ(sizes(engine->getProfileShape("x", 0, OptProfileSelector::kMIN)),
              (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(sizes(engine->getProfileShape("x", 0, OptProfileSelector::kOPT)),
              (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(sizes(engine->getProfileShape("x", 0, OptProfileSelector::kMAX)),
              (std::vector<int64_t>{8, 2}));
    EXPECT_GT(engine->getNbLayers(), 0);
    EXPECT_FALSE(engine->isRefittable());
    EXPECT_TRUE(engine->areWeightsLoaded());
    EXPECT_EQ(engine->getEngineStat(nvinfer1::EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(RuntimeRun, ShapesFollowTheInputs) {
    auto engine = load(*two_results(false));
    auto c = context(*engine);
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    const char* missing = nullptr;
    EXPECT_EQ(c->inferShapes(1, &missing), 1);
    EXPECT_STREQ(missing, "x");
    EXPECT_EQ(sizes(c->getTensorShape("x")), (std::vector<int64_t>{-1, 2}));
    EXPECT_EQ(sizes(c->getTensorShape("y")), (std::vector<int64_t>{-1, 2}));
    EXPECT_EQ(sizes(c->getTensorStrides("y")), (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(sizes(c->getTensorStrides("z")), (std::vector<int64_t>{-1, 1}));
    EXPECT_EQ(c->getMaxOutputSize("y"), -1);
    for (int64_t n : {3, 1, 5}) {
        EXPECT_TRUE(c->setInputShape("x", dims({n, 2})));
        EXPECT_EQ(c->inferShapes(0, nullptr), 0);
        EXPECT_TRUE(c->allInputDimensionsSpecified());
        EXPECT_EQ(sizes(c->getTensorShape("z")), (std::vector<int64_t>{2, n}));
        EXPECT_EQ(sizes(c->getTensorStrides("z")), (std::vector<int64_t>{n, 1}));
        EXPECT_EQ(c->getMaxOutputSize("z"), 8 * n);
        std::vector<float> values;
        for (int64_t i = 0; i < 2 * n; ++i) {
            values.push_back(static_cast<float>(i));
        }
        void* y = memory->allocate(8 * n);
        void* z = memory->allocate(8 * n);
        c->setTensorAddress("x", memory->floats(values));
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", z);
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        synchronize();
        for (int64_t i = 0; i < 2 * n; ++i) {
            EXPECT_EQ(static_cast<float*>(y)[i], static_cast<float>(i + 1));
            EXPECT_EQ(static_cast<float*>(z)[i],
                      2 * static_cast<float>(i % n * 2 + i / n)); // of x[i % n][i / n]
        }
    }
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(RuntimeRun, ExecuteTakesAddressesByIndex) {
    auto engine = load(*two_results());
    auto c = context(*engine);
    c->setInputShape("x", dims({1, 2}));
    void* y = memory->allocate(8);
    void* z = memory->allocate(8);
    std::vector<void*> bindings = {memory->floats({7, 9}), y, z};
    ASSERT_TRUE(c->executeV2(bindings.data())) << logger.take_error();
    EXPECT_EQ(values_at(y, 2), (std::vector<float>{8, 10}));
    EXPECT_EQ(values_at(z, 2), (std::vector<float>{14, 18}));
    EXPECT_EQ(c->getTensorAddress("y"), nullptr);
}

TEST_P(RuntimeRun, RunsDoNotAllocate) {
    if (gpu != nullptr) {
        GTEST_SKIP() << "an emulated launch allocates";
    }
    auto engine = load(*two_results());
    auto c = context(*engine);
    c->setInputShape("x", dims({2, 2}));
    c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
    c->setTensorAddress("y", memory->allocate(16));
    c->setTensorAddress("z", memory->allocate(16));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    }
    int64_t before = allocation_count();
    bool ok = true;
    for (int i = 0; i < 10; ++i) {
        ok = c->enqueueV3(nullptr) && ok;
    }
    EXPECT_EQ(allocation_count(), before);
    EXPECT_TRUE(ok);
}

class Allocator : public nvinfer1::IOutputAllocator {
public:
    explicit Allocator(DeviceMemory& memory) : memory_(memory) {}
    void* reallocateOutputAsync(const char* tensorName, void* currentMemory, uint64_t size,
                                uint64_t alignment, cudaStream_t) override {
        name = tensorName;
        current = currentMemory;
        bytes = size;
        EXPECT_GE(alignment, 16U);
        address = refuse ? nullptr : memory_.allocate(static_cast<int64_t>(size));
        return address;
    }
    void notifyShape(const char* tensorName, const nvinfer1::Dims& d) noexcept override {
        EXPECT_EQ(name, tensorName);
        shape = sizes(d);
    }
    std::string name;
    void* current = nullptr;
    uint64_t bytes = 0;
    void* address = nullptr;
    std::vector<int64_t> shape;
    bool refuse = false;

private:
    DeviceMemory& memory_;
};

TEST_P(RuntimeRun, OutputAllocatorsLearnSizesThatDataDecides) {
    auto engine = load(*data_decides());
    EXPECT_EQ(sizes(engine->getTensorShape("where")), (std::vector<int64_t>{1, -1}));
    auto c = context(*engine);
    Allocator where(*memory);
    Allocator twice(*memory);
    c->setTensorAddress("x", memory->floats({0, 3, 0, 4, 5}));
    EXPECT_TRUE(c->setOutputAllocator("where", &where));
    EXPECT_TRUE(c->setOutputAllocator("twice", &twice));
    EXPECT_EQ(c->getOutputAllocator("twice"), &twice);
    void* old = memory->allocate(20);
    c->setTensorAddress("twice", old);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(where.shape, (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(where.bytes, 12U);
    EXPECT_EQ(where.current, nullptr);
    EXPECT_EQ(values_at(where.address, 3), (std::vector<float>{1, 3, 4}));
    EXPECT_EQ(twice.current, old);
    EXPECT_EQ(values_at(twice.address, 5), (std::vector<float>{0, 6, 0, 8, 10}));
    where.refuse = true;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3: the allocator of output 'where' "
                                   "gave no memory for 12 bytes");
    where.refuse = false;
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_TRUE(c->setOutputAllocator("where", nullptr));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: output 'where' has no memory: call setTensorAddress() "
              "or, where its size depends on data, setOutputAllocator()");
}

TEST_P(RuntimeRun, EngineOfTheDigitsExample) {
    std::string folder = source_dir() + "/examples/digits/";
    auto built = build_engine(folder + "digits.onnx", {});
    auto engine = load(*built);
    ASSERT_NE(engine, nullptr) << logger.take_error();
    Tensor images = read_npy(folder + "held_out_images.npy");
    Tensor labels = read_npy(folder + "held_out_labels.npy");
    auto c = context(*engine);
    const char* input = engine->getIOTensorName(0);
    const char* output = engine->getIOTensorName(1);
    nvinfer1::Dims d = engine->getTensorShape(input);
    const int64_t batch = GetParam() ? 2 : 16;
    d.d[0] = batch;
    ASSERT_TRUE(c->setInputShape(input, d)) << logger.take_error();
    std::vector<float> pixels(static_cast<size_t>(batch * 64));
    for (size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = static_cast<float>(images.get_f64(static_cast<int64_t>(i)));
    }
    auto* scores = static_cast<float*>(memory->allocate(batch * 40));
    ASSERT_TRUE(c->setTensorAddress(input, memory->floats(pixels)));
    ASSERT_TRUE(c->setTensorAddress(output, scores));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    synchronize();
    int right = 0;
    for (int64_t i = 0; i < batch; ++i) {
        float* row = scores + i * 10;
        right += std::max_element(row, row + 10) - row == labels.get_i64(i) ? 1 : 0;
    }
    EXPECT_GE(right, batch - batch / 8);
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeRun, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
