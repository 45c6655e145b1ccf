// SPDX-License-Identifier: Apache-2.0
// IRefitter: names, roles, missing weights; contexts that see the new weights; engines without
// weights, and serialising engines again.
#include "api/refit_fixture.h"

#include <algorithm>

namespace ingot::test {

namespace {

namespace nv = nvinfer1;
using Flag = nv::BuilderFlag;

/// Weights of y = relu(conv(x) * scale + shift) + c.
struct NetWeights {
    explicit NetWeights(float factor) {
        for (size_t i = 0; i < kernel.size(); ++i) {
            kernel[i] = factor * static_cast<float>(static_cast<int>(i * 7 % 11) - 5) / 8;
        }
        bias = {factor, -factor};
        scale = {2 * factor, 0.5F};
        shift = {0.25F, factor};
        constant = {factor};
    }
    static nv::Weights of(const std::vector<float>& v) {
        return {nv::DataType::kFLOAT, v.data(), static_cast<int64_t>(v.size())};
    }
    std::vector<float> kernel = std::vector<float>(2 * 3 * 3 * 3);
    std::vector<float> bias, scale, shift, constant;
};

class RefitTest : public RefitFixture {
protected:
    std::unique_ptr<nv::IHostMemory> build(const NetWeights& w, std::vector<Flag> flags,
                                           bool named = false) {
        std::unique_ptr<nv::INetworkDefinition> n(builder->createNetworkV2(0));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        for (Flag f : flags) {
            config->setFlag(f);
        }
        nv::ITensor* x = n->addInput("x", nv::DataType::kFLOAT, dims({1, 3, 6, 6}));
        nv::IConvolutionLayer* conv = n->addConvolutionNd(
            *x, 2, dims({3, 3}), NetWeights::of(w.kernel), NetWeights::of(w.bias));
        conv->setName("conv");
        nv::IScaleLayer* scale =
            n->addScale(*conv->getOutput(0), nv::ScaleMode::kCHANNEL, NetWeights::of(w.shift),
                        NetWeights::of(w.scale), {nv::DataType::kFLOAT, nullptr, 0});
        scale->setName("norm");
        nv::ITensor* y =
            n->addActivation(*scale->getOutput(0), nv::ActivationType::kRELU)->getOutput(0);
        nv::IConstantLayer* c = n->addConstant(dims({1, 1, 1, 1}), NetWeights::of(w.constant));
        c->setName("offset");
        y = n->addElementWise(*y, *c->getOutput(0), nv::ElementWiseOperation::kSUM)->getOutput(0);
        y->setName("y");
        n->markOutput(*y);
        if (named) {
            EXPECT_TRUE(n->setWeightsName(NetWeights::of(w.kernel), "the kernel"));
            EXPECT_TRUE(n->markWeightsRefittable("the kernel"));
            EXPECT_TRUE(n->areWeightsMarkedRefittable("the kernel"));
        }
        return std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*n, *config));
    }
    std::vector<float> run(nv::IExecutionContext& c) {
        std::vector<float> x(3 * 6 * 6);
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 13) - 6;
        }
        void* in = memory->floats(x);
        void* out = memory->allocate(2 * 4 * 4 * 4);
        EXPECT_TRUE(c.setTensorAddress("x", in));
        EXPECT_TRUE(c.setTensorAddress("y", out));
        void* bindings[] = {in, out};
        EXPECT_TRUE(c.executeV2(bindings)) << logger.take_error();
        return values_at(out, 2 * 4 * 4);
    }
    std::vector<float> run(nv::ICudaEngine& e) {
        auto c = context(e);
        return c == nullptr ? std::vector<float>() : run(*c);
    }
    std::vector<float> expected(const NetWeights& w) { return run(*engine_of(*build(w, {}))); }

    static std::vector<std::string> names(nv::IRefitter& r, bool missing) {
        int32_t n = missing ? r.getMissingWeights(0, nullptr) : r.getAllWeights(0, nullptr);
        std::vector<const char*> list(static_cast<size_t>(n));
        missing ? r.getMissingWeights(n, list.data()) : r.getAllWeights(n, list.data());
        std::vector<std::string> out(list.begin(), list.end());
        std::sort(out.begin(), out.end());
        return out;
    }
    static bool set_all(nv::IRefitter& r, const NetWeights& w) {
        return r.setWeights("conv", nv::WeightsRole::kKERNEL, NetWeights::of(w.kernel)) &&
               r.setWeights("conv", nv::WeightsRole::kBIAS, NetWeights::of(w.bias)) &&
               r.setWeights("norm", nv::WeightsRole::kSCALE, NetWeights::of(w.scale)) &&
               r.setWeights("norm", nv::WeightsRole::kSHIFT, NetWeights::of(w.shift)) &&
               r.setNamedWeights("offset.constant", NetWeights::of(w.constant));
    }

    NetWeights first{1};
    NetWeights second{-1.5F};
};

const std::vector<std::string> all_names = {"conv.bias", "conv.kernel", "norm.scale", "norm.shift",
                                            "offset.constant"};

} // namespace

TEST_P(RefitTest, ContextsSeeTheNewWeightsBitForBit) {
    auto bytes = build(first, {Flag::kREFIT});
    auto engine = engine_of(*bytes);
    EXPECT_TRUE(engine->isRefittable());
    auto before = context(*engine);
    EXPECT_EQ(run(*before), expected(first));
    auto refitter = refitter_of(*engine);
    EXPECT_EQ(names(*refitter, false), all_names);
    EXPECT_TRUE(names(*refitter, true).empty());
    EXPECT_TRUE(set_all(*refitter, second)) << logger.take_error();
    EXPECT_EQ(run(*before), expected(first)); // not before the refit
    EXPECT_TRUE(refitter->refitCudaEngine()) << logger.take_error();
    EXPECT_EQ(run(*before), expected(second));
    EXPECT_EQ(run(*before), expected(second));
    EXPECT_EQ(run(*engine), expected(second));
    EXPECT_TRUE(set_all(*refitter, first));
    EXPECT_TRUE(refitter->refitCudaEngineAsync(nullptr));
    EXPECT_EQ(run(*before), expected(first));
    EXPECT_EQ(logger.take_error(), "");
}

/// Engines of equal weights share their memory on a GPU.
TEST_P(RefitTest, OtherEnginesOfTheseWeightsKeepThem) {
    auto bytes = build(first, {Flag::kREFIT});
    std::vector<std::unique_ptr<nv::ICudaEngine>> engines;
    std::vector<std::unique_ptr<nv::IExecutionContext>> contexts;
    for (int i = 0; i < 3; ++i) {
        engines.push_back(engine_of(*bytes));
        contexts.push_back(context(*engines.back()));
        EXPECT_EQ(run(*contexts.back()), expected(first));
    }
    auto refit = [&](size_t i) {
        auto refitter = refitter_of(*engines[i]);
        EXPECT_TRUE(set_all(*refitter, second));
        EXPECT_TRUE(refitter->refitCudaEngine()) << logger.take_error();
    };
    refit(0);
    EXPECT_EQ(run(*contexts[1]), expected(first));
    EXPECT_EQ(run(*contexts[0]), expected(second));
    refit(1);
    EXPECT_EQ(run(*contexts[1]), expected(second));
    EXPECT_EQ(run(*contexts[2]), expected(first));
    contexts[0].reset();
    engines[0].reset();
    EXPECT_EQ(run(*contexts[1]), expected(second));
    EXPECT_EQ(run(*engines[2]), expected(first));
}

TEST_P(RefitTest, OneOfManyWeightsCanBeReplaced) {
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    auto refitter = refitter_of(*engine);
    EXPECT_TRUE(refitter->setNamedWeights("norm.scale", NetWeights::of(second.scale)));
    EXPECT_TRUE(refitter->refitCudaEngine());
    NetWeights mixed = first;
    mixed.scale = second.scale;
    EXPECT_EQ(run(*engine), expected(mixed));
}

TEST_P(RefitTest, WeightsInDeviceMemory) {
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    auto refitter = refitter_of(*engine);
    nv::Weights w{nv::DataType::kFLOAT, memory->floats(second.bias), 2};
    EXPECT_TRUE(refitter->setNamedWeights("conv.bias", w, nv::TensorLocation::kDEVICE));
    EXPECT_EQ(refitter->getWeightsLocation("conv.bias"), nv::TensorLocation::kDEVICE);
    EXPECT_EQ(refitter->getNamedWeights("conv.bias").values, w.values);
    EXPECT_TRUE(refitter->refitCudaEngine());
    NetWeights mixed = first;
    mixed.bias = second.bias;
    EXPECT_EQ(run(*engine), expected(mixed));
}

TEST_P(RefitTest, OnlyMarkedWeightsWithRefitIndividual) {
    auto engine = engine_of(*build(first, {Flag::kREFIT_INDIVIDUAL}, true));
    auto refitter = refitter_of(*engine);
    EXPECT_EQ(names(*refitter, false), std::vector<std::string>{"the kernel"});
    EXPECT_TRUE(
        refitter->setWeights("conv", nv::WeightsRole::kKERNEL, NetWeights::of(second.kernel)));
    EXPECT_TRUE(refitter->refitCudaEngine());
    NetWeights mixed = first;
    mixed.kernel = second.kernel;
    EXPECT_EQ(run(*engine), expected(mixed));
    EXPECT_FALSE(refitter->setNamedWeights("conv.bias", NetWeights::of(second.bias)));
    EXPECT_NE(logger.take_error().find("cannot be refitted"), std::string::npos);
}

TEST_P(RefitTest, StrippedEnginesRunAfterARefit) {
    auto whole = build(first, {Flag::kREFIT});
    auto bare = build(first, {Flag::kSTRIP_PLAN});
    auto engine = engine_of(*bare);
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_TRUE(engine->isRefittable());
    EXPECT_EQ(engine->getEngineStat(nv::EngineStat::kSTRIPPED_WEIGHTS_SIZE),
              4 * (2 * 3 * 3 * 3 + 2 + 2 + 2 + 1));
    EXPECT_EQ(engine_of(*whole)->getEngineStat(nv::EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
    EXPECT_EQ(engine->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE),
              engine_of(*whole)->getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE));
    EXPECT_EQ(context(*engine), nullptr);
    EXPECT_NE(logger.take_error().find("refit it first"), std::string::npos);
    auto refitter = refitter_of(*engine);
    EXPECT_EQ(names(*refitter, true), all_names);
    EXPECT_FALSE(refitter->refitCudaEngine());
    EXPECT_NE(logger.take_error().find("are missing: set them too"), std::string::npos);
    // kSTRIP_PLAN alone takes the weights of the build, and no others.
    EXPECT_TRUE(set_all(*refitter, second));
    EXPECT_TRUE(names(*refitter, true).empty());
    EXPECT_FALSE(refitter->refitCudaEngine());
    EXPECT_NE(logger.take_error().find("kREFIT_IDENTICAL"), std::string::npos);
    EXPECT_TRUE(set_all(*refitter, first));
    EXPECT_TRUE(refitter->refitCudaEngine());
    EXPECT_EQ(run(*engine), expected(first));
}

TEST_P(RefitTest, SerialisedAgain) {
    auto engine = engine_of(*build(first, {Flag::kSTRIP_PLAN, Flag::kREFIT}));
    std::unique_ptr<nv::ISerializationConfig> config(engine->createSerializationConfig());
    using Part = nv::SerializationFlag;
    EXPECT_TRUE(config->getFlag(Part::kEXCLUDE_WEIGHTS));
    EXPECT_TRUE(config->getFlag(Part::kINCLUDE_REFIT));
    std::unique_ptr<nv::IHostMemory> bare(engine->serializeWithConfig(*config));
    ASSERT_NE(bare, nullptr);
    config->clearFlag(Part::kEXCLUDE_WEIGHTS);
    EXPECT_EQ(engine->serializeWithConfig(*config), nullptr);
    EXPECT_NE(logger.take_error().find("the weights are missing"), std::string::npos);
    auto refitter = refitter_of(*engine);
    EXPECT_TRUE(set_all(*refitter, second));
    EXPECT_TRUE(refitter->refitCudaEngine());
    std::unique_ptr<nv::IHostMemory> full(engine->serializeWithConfig(*config));
    EXPECT_EQ(run(*engine_of(*full)), expected(second));
    EXPECT_TRUE(engine_of(*full)->isRefittable());
    config->clearFlag(Part::kINCLUDE_REFIT);
    std::unique_ptr<nv::IHostMemory> fixed(engine->serializeWithConfig(*config));
    EXPECT_LT(fixed->size(), full->size());
    EXPECT_EQ(run(*engine_of(*fixed)), expected(second));
    EXPECT_FALSE(engine_of(*fixed)->isRefittable());
    config->setFlag(Part::kEXCLUDE_WEIGHTS);
    EXPECT_EQ(engine->serializeWithConfig(*config), nullptr);
    EXPECT_NE(logger.take_error().find("must be refittable"), std::string::npos);
}

TEST_P(RefitTest, PrototypesAndWhatWasSet) {
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    auto refitter = refitter_of(*engine);
    nv::Weights p = refitter->getWeightsPrototype("conv.kernel");
    EXPECT_EQ(p.type, nv::DataType::kFLOAT);
    EXPECT_EQ(p.count, 54);
    EXPECT_EQ(p.values, nullptr);
    EXPECT_EQ(refitter->getNamedWeights("conv.kernel").values, nullptr);
    EXPECT_FALSE(refitter->unsetNamedWeights("conv.kernel"));
    EXPECT_TRUE(refitter->setNamedWeights("conv.kernel", NetWeights::of(second.kernel)));
    EXPECT_EQ(refitter->getNamedWeights("conv.kernel").values, second.kernel.data());
    EXPECT_TRUE(refitter->unsetNamedWeights("conv.kernel"));
    EXPECT_TRUE(refitter->refitCudaEngine());
    EXPECT_EQ(run(*engine), expected(first));
    EXPECT_EQ(refitter->getMaxThreads(), 1);
    EXPECT_TRUE(refitter->setMaxThreads(4));
    EXPECT_EQ(refitter->getMaxThreads(), 4);
    EXPECT_TRUE(refitter->getWeightsValidation());
    EXPECT_EQ(refitter->getLogger(), &logger);
    const char* layers[8] = {};
    nv::WeightsRole roles[8] = {};
    EXPECT_EQ(refitter->getAll(8, layers, roles), 5);
    EXPECT_EQ(std::string(layers[0]), "conv");
    EXPECT_EQ(refitter->getMissing(8, layers, roles), 0);
}

TEST_P(RefitTest, ARefitterOutlivesItsEngine) {
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    auto c = context(*engine);
    auto refitter = refitter_of(*engine);
    engine.reset();
    EXPECT_TRUE(set_all(*refitter, second));
    EXPECT_TRUE(refitter->refitCudaEngine());
    refitter.reset();
    EXPECT_EQ(run(*c), expected(second));
}

TEST_P(RefitTest, ContextsKeepTheirMemoryAndProfiler) {
    struct Profiler : nv::IProfiler {
        void reportLayerTime(const char*, float) noexcept override { ++calls; }
        int calls = 0;
    } profiler;
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    std::unique_ptr<nv::IExecutionContext> c(
        engine->createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED));
    int64_t bytes = std::max<int64_t>(engine->getDeviceMemorySizeV2(), 1);
    c->setDeviceMemoryV2(memory->allocate(bytes), bytes);
    c->setProfiler(&profiler);
    EXPECT_EQ(run(*c), expected(first));
    EXPECT_GT(std::exchange(profiler.calls, 0), 0);
    auto refitter = refitter_of(*engine);
    EXPECT_TRUE(set_all(*refitter, second));
    EXPECT_TRUE(refitter->refitCudaEngine());
    EXPECT_EQ(run(*c), expected(second));
    EXPECT_GT(profiler.calls, 0);
}

TEST_P(RefitTest, Misuse) {
    auto engine = engine_of(*build(first, {Flag::kREFIT}));
    auto r = refitter_of(*engine);
    auto said = [&](bool result) {
        EXPECT_FALSE(result);
        return logger.take_error();
    };
    EXPECT_EQ(said(r->setNamedWeights("conv.kernal", NetWeights::of(second.kernel))),
              "IRefitter::setNamedWeights: the engine has no weights 'conv.kernal', did you mean "
              "'conv.kernel'?");
    EXPECT_EQ(said(r->setNamedWeights(nullptr, NetWeights::of(second.kernel))),
              "IRefitter::setNamedWeights: the name of the weights is null");
    EXPECT_EQ(said(r->setNamedWeights("conv.kernel", NetWeights::of(second.bias))),
              "IRefitter::setNamedWeights: weights 'conv.kernel' have 2 elements, expected 54");
    EXPECT_EQ(said(r->setNamedWeights("conv.bias", {nv::DataType::kHALF, second.bias.data(), 2})),
              "IRefitter::setNamedWeights: weights 'conv.bias' are HALF, expected FLOAT");
    EXPECT_EQ(said(r->setNamedWeights("conv.bias", {nv::DataType::kFLOAT, nullptr, 2})),
              "IRefitter::setNamedWeights: weights 'conv.bias' are at a null address");
    EXPECT_EQ(said(r->setWeights("norm", nv::WeightsRole::kKERNEL, NetWeights::of(second.bias))),
              "IRefitter::setWeights: layer 'norm' has no weights of role 0 that can be refitted; "
              "getAll() lists them");
    EXPECT_EQ(said(r->setMaxThreads(0)),
              "IRefitter::setMaxThreads: maxThreads is 0, expected 1 or more");
    auto plain = engine_of(*build(first, {}));
    EXPECT_EQ(refitter_of(*plain), nullptr);
    EXPECT_EQ(logger.take_error(),
              "createInferRefitter: the engine cannot be refitted: build it with kREFIT, "
              "kREFIT_IDENTICAL, kREFIT_INDIVIDUAL or kSTRIP_PLAN");
}

INSTANTIATE_TEST_SUITE_P(Devices, RefitTest, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "Gpu" : "Cpu"; });

} // namespace ingot::test
