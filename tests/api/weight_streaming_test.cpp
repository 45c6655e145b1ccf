// SPDX-License-Identifier: Apache-2.0
// Weight streaming through the API: sizes, budgets, what they need, and the same results.
#include "NvInfer.h"
#include "api/runtime_fixture.h"

namespace ingot::test {

namespace {

namespace nv = nvinfer1;

constexpr int64_t width = 48;
constexpr int64_t matrix_bytes = width * width * 4;
constexpr int64_t matrices = 3;

class WeightStreamingTest : public RuntimeTest {
protected:
    std::unique_ptr<nv::ICudaEngine> engine(bool streams) {
        std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
        std::unique_ptr<nv::INetworkDefinition> n(builder->createNetworkV2(0));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        if (streams) {
            config->setFlag(nv::BuilderFlag::kWEIGHT_STREAMING);
        }
        nv::ITensor* y = n->addInput("x", nv::DataType::kFLOAT, dims({4, width}));
        for (size_t i = 0; i < matrices; ++i) {
            values[i].resize(width * width);
            for (size_t k = 0; k < values[i].size(); ++k) {
                values[i][k] = static_cast<float>((k * 7 + i * 5) % 23) / 32 - 0.3F;
            }
            nv::IConstantLayer* w = n->addConstant(
                dims({width, width}), {nv::DataType::kFLOAT, values[i].data(), width * width});
            y = n->addMatrixMultiply(*y, nv::MatrixOperation::kNONE, *w->getOutput(0),
                                     nv::MatrixOperation::kNONE)
                    ->getOutput(0);
            y = n->addActivation(*y, nv::ActivationType::kRELU)->getOutput(0);
        }
        y->setName("y");
        n->markOutput(*y);
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*n, *config));
        return std::unique_ptr<nv::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    }
    std::vector<float> run(nv::ICudaEngine& e) {
        auto c = context(e);
        if (c == nullptr) {
            return {};
        }
        std::vector<float> x(4 * width);
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 11) / 8;
        }
        void* bindings[] = {memory->floats(x), memory->allocate(4 * width * 4)};
        EXPECT_TRUE(c->executeV2(bindings)) << logger.take_error();
        return values_at(bindings[1], 4 * width);
    }
    std::vector<float> values[matrices];
};

} // namespace

TEST_P(WeightStreamingTest, BudgetsNeedScratchAndGiveTheSameResults) {
    auto e = engine(true);
    int64_t all = e->getStreamableWeightsSize();
    EXPECT_EQ(all, matrices * matrix_bytes);
    EXPECT_EQ(e->getWeightStreamingBudgetV2(), all);
    EXPECT_EQ(e->getWeightStreamingScratchMemorySize(), 0);
    std::vector<float> expected = run(*e);
    EXPECT_EQ(expected, run(*engine(false)));
    int64_t before = e->getDeviceMemorySizeV2();
    for (int64_t kept : {int64_t{0}, matrix_bytes, 2 * matrix_bytes + 1}) {
        SCOPED_TRACE(kept);
        ASSERT_TRUE(e->setWeightStreamingBudgetV2(kept)) << logger.take_error();
        EXPECT_EQ(e->getWeightStreamingBudgetV2(), kept);
        EXPECT_EQ(run(*e), expected);
        EXPECT_EQ(e->getWeightStreamingScratchMemorySize(), GetParam() ? matrix_bytes : 0);
        int64_t more = e->getDeviceMemorySizeV2() - before;
        EXPECT_LE(more, GetParam() ? matrix_bytes : 0);
        EXPECT_EQ(more > 0, GetParam());
    }
    EXPECT_TRUE(e->setWeightStreamingBudgetV2(all));
    EXPECT_EQ(e->getWeightStreamingScratchMemorySize(), 0);
    EXPECT_EQ(e->getDeviceMemorySizeV2(), before);
    EXPECT_EQ(run(*e), expected);
    EXPECT_EQ(e->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE), matrices * matrix_bytes);
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(WeightStreamingTest, TheAutomaticBudgetFits) {
    auto e = engine(true);
    int64_t budget = e->getWeightStreamingAutomaticBudget();
    EXPECT_GE(budget, 0);
    EXPECT_LE(budget, e->getStreamableWeightsSize());
    EXPECT_TRUE(e->setWeightStreamingBudgetV2(budget));
}

TEST_P(WeightStreamingTest, OlderMethods) {
    auto e = engine(true);
    EXPECT_TRUE(e->setWeightStreamingBudget(-1));
    EXPECT_EQ(e->getWeightStreamingBudget(), e->getStreamableWeightsSize());
    EXPECT_TRUE(e->setWeightStreamingBudget(0));
    EXPECT_EQ(e->getWeightStreamingBudget(), e->getWeightStreamingAutomaticBudget());
    EXPECT_TRUE(e->setWeightStreamingBudget(matrix_bytes));
    EXPECT_EQ(e->getWeightStreamingBudget(), matrix_bytes);
    EXPECT_EQ(e->getMinimumWeightStreamingBudget(), 0);
}

TEST_P(WeightStreamingTest, Misuse) {
    auto plain = engine(false);
    EXPECT_EQ(plain->getStreamableWeightsSize(), 0);
    EXPECT_EQ(plain->getWeightStreamingBudgetV2(), 0);
    EXPECT_TRUE(plain->setWeightStreamingBudgetV2(0));
    EXPECT_FALSE(plain->setWeightStreamingBudgetV2(1));
    EXPECT_EQ(logger.take_error(),
              "ICudaEngine::setWeightStreamingBudgetV2: the budget is 1, expected 0: no weights of "
              "this engine can be streamed; build it with kWEIGHT_STREAMING");
    auto e = engine(true);
    EXPECT_FALSE(e->setWeightStreamingBudgetV2(-5));
    EXPECT_EQ(logger.take_error(),
              str("ICudaEngine::setWeightStreamingBudgetV2: the budget is -5, expected 0 to ",
                  matrices * matrix_bytes, "; getWeightStreamingAutomaticBudget() suggests one"));
    auto c = context(*e);
    EXPECT_FALSE(e->setWeightStreamingBudgetV2(0));
    EXPECT_EQ(logger.take_error(),
              "ICudaEngine::setWeightStreamingBudgetV2: the engine has 1 contexts: set the budget "
              "before the first one is made, or delete them");
    c.reset();
    EXPECT_TRUE(e->setWeightStreamingBudgetV2(0));
}

INSTANTIATE_TEST_SUITE_P(Devices, WeightStreamingTest, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "Gpu" : "Cpu"; });

} // namespace ingot::test
