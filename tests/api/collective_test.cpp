// SPDX-License-Identifier: Apache-2.0
// addDistCollective and setCommunicator: ranks are threads with a context each, on an emulated GPU,
// by a libnccl of the tests.
#include "NvInfer.h"
#include "api/runtime_fixture.h"
#include "gpu/collectives.h"

#include <cstdlib>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;

class DistCollective : public RuntimeTest {
protected:
    DistCollective() {
        ::setenv("INGOT_NCCL", FAKE_NCCL, 1); // before anything opens one
        builder.reset(nv::createInferBuilder(logger));
        network.reset(builder->createNetworkV2(0));
        x = network->addInput("x", nv::DataType::kFLOAT, dims({4, 2}));
    }
    static std::vector<float> numbers(float first, size_t count) {
        std::vector<float> v(count);
        for (float& n : v) {
            n = first++;
        }
        return v;
    }
    nv::IDistCollectiveLayer* add(nv::CollectiveOperation op, nv::ReduceOperation f,
                                  int64_t root = -1, std::vector<int64_t> group = {}) {
        return network->addDistCollective(*x, op, f, root, group.empty() ? nullptr : group.data(),
                                          static_cast<int64_t>(group.size()));
    }
    std::unique_ptr<nv::ICudaEngine> build(nv::ITensor& y) {
        y.setName("y");
        network->markOutput(y);
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        return std::unique_ptr<nv::ICudaEngine>(
            bytes == nullptr ? nullptr
                             : runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    }

    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::INetworkDefinition> network;
    nv::ITensor* x = nullptr;
};

class DistCollectiveOnAGpu : public DistCollective {};

TEST_P(DistCollectiveOnAGpu, RanksInThreads) {
    if (real::is_asked_for()) {
        GTEST_SKIP() << "one device: test_gpu has what needs two";
    }
    nv::IDistCollectiveLayer* c =
        add(nv::CollectiveOperation::kALL_GATHER, nv::ReduceOperation::kNONE);
    ASSERT_TRUE(c->setNbRanks(2));
    nv::ITensor& all = *c->getOutput(0);
    EXPECT_EQ(sizes(all.getDimensions()), (std::vector<int64_t>{8, 2}));
    auto engine = build(*network->addUnary(all, nv::UnaryOperation::kNEG)->getOutput(0));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    Communicators communicators(FAKE_NCCL, {0, 1});
    std::vector<float*> out = {memory->floats(std::vector<float>(16)),
                               memory->floats(std::vector<float>(16))};
    each_rank(2, [&](size_t r) {
        auto run = context(*engine);
        require(run->setCommunicator(communicators[r]), ErrorCode::Internal, logger.take_error());
        float* in = memory->floats(numbers(r == 0 ? 1 : 101, 8));
        run->setTensorAddress("x", in);
        run->setTensorAddress("y", out[r]);
        for (int i = 0; i < 3; ++i) { // not replayed: changes are visible
            in[0] = static_cast<float>(-i);
            require(run->enqueueV3(stream()), ErrorCode::Internal, logger.take_error());
        }
    });
    for (float* y : out) {
        EXPECT_EQ(values_at(y, 3), (std::vector<float>{2, -2, -3}));
        EXPECT_EQ(values_at(y + 8, 3), (std::vector<float>{2, -102, -103}));
    }
}

TEST_P(DistCollectiveOnAGpu, RunsSayWhatIsMissing) {
    nv::IDistCollectiveLayer* c =
        add(nv::CollectiveOperation::kREDUCE, nv::ReduceOperation::kSUM, 1);
    c->setName("sum");
    ASSERT_TRUE(c->setNbRanks(2));
    auto engine = build(*c->getOutput(0));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto run = context(*engine);
    run->setTensorAddress("x", memory->floats(numbers(0, 8)));
    run->setTensorAddress("y", memory->floats(numbers(0, 8)));
    EXPECT_FALSE(run->enqueueV3(stream()));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: node 'sum' (collective): reduce between 2 ranks: no "
              "communicator is set; give the ncclComm_t of this rank to "
              "IExecutionContext::setCommunicator()");
    Communicators three(FAKE_NCCL, {0, 1, 2});
    EXPECT_FALSE(run->setCommunicator(three[0]));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::setCommunicator: node 'sum' exchanges data "
                                   "between 2 ranks, the communicator has 3");
    EXPECT_TRUE(run->setCommunicator(nullptr));
}

INSTANTIATE_TEST_SUITE_P(Gpu, DistCollectiveOnAGpu, testing::Values(true));

class DistCollectiveAnywhere : public DistCollective {};

TEST_P(DistCollectiveAnywhere, OfOneRankGivesWhatItGets) {
    nv::IDistCollectiveLayer* c =
        add(nv::CollectiveOperation::kBROADCAST, nv::ReduceOperation::kNONE, 5, {5});
    auto engine = build(*c->getOutput(0));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto run = context(*engine);
    float* y = memory->floats(numbers(0, 8));
    run->setTensorAddress("x", memory->floats(numbers(7, 8)));
    run->setTensorAddress("y", y);
    ASSERT_TRUE(run->enqueueV3(stream())) << logger.take_error();
    synchronize();
    EXPECT_EQ(values_at(y, 8), numbers(7, 8));
}

TEST_P(DistCollectiveAnywhere, IsRefusedOnTheCpu) {
    nv::IDistCollectiveLayer* c =
        add(nv::CollectiveOperation::kALL_REDUCE, nv::ReduceOperation::kSUM);
    c->setName("sum");
    c->setNbRanks(4);
    auto engine = build(*c->getOutput(0));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_EQ(engine->createExecutionContext(), nullptr);
    EXPECT_EQ(
        logger.take_error(),
        "ICudaEngine::createExecutionContext: node 'sum' (collective): no kernel of the cpu "
        "backend runs it: it exchanges data between 4 GPUs by NCCL; run it on GPUs, each rank "
        "in a thread or process of its own");
}

TEST_P(DistCollectiveAnywhere, MisuseSaysWhatIsWrong) {
    using Op = nv::CollectiveOperation;
    using Reduce = nv::ReduceOperation;
    auto fails = [&](const char* text, Op op, Reduce f, int64_t root, std::vector<int64_t> group) {
        EXPECT_EQ(add(op, f, root, std::move(group)), nullptr);
        EXPECT_EQ(logger.take_error(),
                  std::string("INetworkDefinition::addDistCollective: ") + text);
    };
    fails("the operation reduces, but the reduction is kNONE", Op::kALL_REDUCE, Reduce::kNONE, -1,
          {});
    fails("the operation reduces nothing, but the reduction is not kNONE", Op::kALL_GATHER,
          Reduce::kSUM, -1, {});
    fails("the root is -1, expected a rank", Op::kBROADCAST, Reduce::kNONE, -1, {});
    fails("the root is 2, expected one of [0,1]", Op::kSCATTER, Reduce::kNONE, 2, {0, 1});
    fails("the group is [1,1], expected ranks, each once", Op::kALL_REDUCE, Reduce::kSUM, -1,
          {1, 1});
    EXPECT_EQ(network->addDistCollective(*x, Op::kALL_REDUCE, Reduce::kSUM, -1, nullptr, 2),
              nullptr);
    EXPECT_EQ(logger.take_error(), "INetworkDefinition::addDistCollective: there are 2 ranks in a "
                                   "group that is nullptr");
    auto shape_fails = [&](const char* text, nv::ILayer* layer) {
        ASSERT_NE(layer, nullptr) << logger.take_error();
        layer->setName("c");
        layer->getOutput(0)->getDimensions();
        EXPECT_EQ(logger.take_error(), std::string("ITensor::getDimensions: layer 'c' (") + text);
    };
    shape_fails("DistCollective): the root is rank 2, and 1 takes part: say how many with "
                "setNbRanks()",
                add(Op::kREDUCE, Reduce::kMAX, 2));
    nv::ILayer* group = add(Op::kALL_REDUCE, Reduce::kSUM, -1, {0, 1});
    group->setNbRanks(3);
    shape_fails("DistCollective): the group has 2 ranks, and setNbRanks() says 3", group);
    nv::ILayer* parts = add(Op::kREDUCE_SCATTER, Reduce::kSUM);
    parts->setNbRanks(3);
    shape_fails("DistCollective): collective: axis 0 of f32[4,2] does not divide into 3 parts for "
                "reduce_scatter",
                parts);
    nv::ILayer* identity = network->addIdentity(*x);
    identity->setNbRanks(2);
    shape_fails("Identity): setNbRanks() says 2 GPUs, and the layer runs on one: give each rank "
                "its part of the weights, and combine their results by addDistCollective()",
                identity);
}

INSTANTIATE_TEST_SUITE_P(Cpu, DistCollectiveAnywhere, testing::Values(false));

} // namespace
} // namespace ingot::test
