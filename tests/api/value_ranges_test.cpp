// SPDX-License-Identifier: Apache-2.0
// Infinities by the public API: the first layer that makes one, and samples that show a build with
// kFP16 which layers would.
#include "api/network_fixture.h"
#include "ingot.h"

namespace ingot::test {

namespace {

using Sizes = std::vector<int64_t>;

void expect_text(const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

struct Told {
    std::string text;
    std::string layer;
    std::string value;
    std::vector<int64_t> index;
    std::vector<int64_t> dims;
    int64_t count;
    bool arises;
};

class Warnings : public SilentLogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        SilentLogger::log(severity, msg);
        if (severity == Severity::kWARNING && std::string_view(msg).starts_with("fp16: ")) {
            warnings.emplace_back(msg);
        }
    }
    std::vector<std::string> warnings;
};

HostTensor host(Tensor& t) {
    nv::Dims d{static_cast<int32_t>(t.rank()), {}};
    std::copy(t.shape().begin(), t.shape().end(), d.d);
    return {t.mutable_bytes().data(),
            t.dtype() == DType::F32 ? nv::DataType::kFLOAT : nv::DataType::kINT32, d};
}

class FindNotFinite : public NetworkTest {
protected:
    /// log(x) times a matrix with zeros.
    void SetUp() override {
        auto* log = network->addUnary(input("x", {-1, 3}), nv::UnaryOperation::kLOG);
        log->setName("logarithm");
        auto& w =
            constant(Tensor::of<double>(DType::F32, {3, 2}, std::vector{1., 1., 0., 1., 1., 0.}));
        auto* product = network->addMatrixMultiply(*log->getOutput(0), nv::MatrixOperation::kNONE,
                                                   w, nv::MatrixOperation::kNONE);
        product->setName("product");
        network->markOutput(*product->getOutput(0));
        auto* profile = builder->createOptimizationProfile();
        profile->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1, 3}));
        profile->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2, 3}));
        profile->setDimensions("x", nv::OptProfileSelector::kMAX, dims({4, 3}));
        config->addOptimizationProfile(profile);
        std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        ASSERT_NE(plan, nullptr);
        runtime.reset(nv::createInferRuntime(logger));
        ASSERT_TRUE(setDevice(*runtime, Device::kCPU));
        engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        ASSERT_NE(engine, nullptr);
    }
    int32_t find(const HostTensor* inputs, int32_t count) {
        told.clear();
        auto keep = [](const NotFiniteResult& r, void* user) {
            static_cast<std::vector<Told>*>(user)->push_back(
                {r.text, r.layer, r.value, list(r.index), list(r.dims), r.count, r.arises});
        };
        return findNotFinite(*engine, inputs, count, keep, &told);
    }
    std::unique_ptr<nv::IRuntime> runtime;
    std::unique_ptr<nv::ICudaEngine> engine;
    std::vector<Told> told;
};

} // namespace

TEST_F(FindNotFinite, TheFirstLayerAndTheFirstNanAreNamed) {
    Tensor x = numbers({4, 3}, 1, 2);
    HostTensor given = host(x);
    EXPECT_EQ(find(&given, 1), 0);
    EXPECT_TRUE(told.empty());
    x.set_f64(7, 0);  // [2, 1]
    x.set_f64(10, 0); // [3, 1]
    ASSERT_EQ(find(&given, 1), 2);
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].layer, "'logarithm'");
    EXPECT_EQ(told[0].value, "-inf");
    EXPECT_EQ(told[0].index, (Sizes{2, 1}));
    EXPECT_EQ(told[0].dims, (Sizes{4, 3}));
    EXPECT_EQ(told[0].count, 2);
    EXPECT_TRUE(told[0].arises);
    EXPECT_EQ(told[0].text, "'logarithm' (map) gives -inf at [2,1] of f32[4,3]; 2 of its elements "
                            "are not finite, and all that it reads is finite");
    EXPECT_EQ(told[1].layer, "'product'");
    EXPECT_EQ(told[1].value, "nan");
    EXPECT_EQ(told[1].index, (Sizes{2, 0}));
    EXPECT_FALSE(told[1].arises);
}

TEST_F(FindNotFinite, InputsThatDoNotFitAreErrors) {
    Tensor x = numbers({5, 3}, 1, 2);
    HostTensor given = host(x);
    EXPECT_EQ(find(&given, 1), -1);
    expect_text(take_error(), "allowed 1 to 4");
    EXPECT_EQ(find(&given, 0), -1);
    expect_text(take_error(), "findNotFinite: got 0 inputs, the engine has 1");
    EXPECT_EQ(find(nullptr, 1), -1);
    expect_text(take_error(), "got 1 inputs at a null address");
    EXPECT_EQ(find(&given, -1), -1);
    expect_text(take_error(), "got -1 inputs");
    given.type = nv::DataType::kINT32;
    EXPECT_EQ(find(&given, 1), -1);
    expect_text(take_error(), "input 'x': got i32, expected f32");
    given = host(x);
    given.dims.d[0] = -1;
    EXPECT_EQ(find(&given, 1), -1);
    expect_text(take_error(), "got shape [-1,3], expected sizes of 0 or more");
    EXPECT_EQ(findNotFinite(*engine, &given, 1, nullptr), -1);
    expect_text(take_error(), "the visitor is null");
    EXPECT_EQ(ingotFindNotFinite(nullptr, &given, 1, nullptr, nullptr), -1);
    EXPECT_TRUE(told.empty());
}

namespace {

/// x times 3e4, then times 1e-3: the first product passes f16's range for x above 2.2.
class SampleInputs : public NetworkTest {
protected:
    SampleInputs() {
        builder.reset(nv::createInferBuilder(warned));
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
        auto times = [&](nv::ITensor& t, double factor, const char* name) -> nv::ITensor& {
            Tensor w = Tensor::zeros(DType::F32, {4, 4});
            for (int64_t i = 0; i < 4; ++i) {
                w.set_f64(5 * i, factor);
            }
            auto* layer = network->addMatrixMultiply(t, nv::MatrixOperation::kNONE, constant(w),
                                                     nv::MatrixOperation::kNONE);
            layer->setName(name);
            return *layer->getOutput(0);
        };
        nv::ITensor& hot = times(input("x", {2, 4}), 3e4, "up");
        network->markOutput(times(hot, 1e-3, "down"));
        config->setFlag(nv::BuilderFlag::kFP16);
    }
    bool builds() {
        warned.warnings.clear();
        std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        return plan != nullptr;
    }
    Warnings warned;
};

} // namespace

TEST_F(SampleInputs, LayersThatOverflowKeepF32AndAreNamed) {
    ASSERT_TRUE(builds());
    EXPECT_TRUE(warned.warnings.empty());
    Tensor cold = numbers({2, 4}, 0, 1);
    Tensor hot = numbers({2, 4}, 3, 4);
    HostTensor given = host(cold);
    ASSERT_TRUE(addSampleInputs(*config, &given, 1));
    ASSERT_TRUE(builds());
    EXPECT_TRUE(warned.warnings.empty());
    given = host(hot);
    ASSERT_TRUE(addSampleInputs(*config, &given, 1));
    hot = Tensor(); // the configuration has a copy
    ASSERT_TRUE(builds());
    ASSERT_EQ(warned.warnings.size(), 1U);
    expect_text(warned.warnings[0],
                "fp16: layers keep f32 where values pass 65504, the largest number of "
                "f16: 'up' reaches ");
    config->reset();
    config->setFlag(nv::BuilderFlag::kFP16);
    ASSERT_TRUE(builds());
    EXPECT_TRUE(warned.warnings.empty());
}

TEST_F(SampleInputs, ThoseThatDoNotFitAreErrors) {
    Tensor narrow = numbers({2, 3});
    HostTensor given = host(narrow);
    HostTensor null = given;
    null.data = nullptr;
    EXPECT_FALSE(addSampleInputs(*config, &null, 1));
    EXPECT_FALSE(addSampleInputs(*config, nullptr, 1));
    EXPECT_FALSE(ingotAddSampleInputs(nullptr, &given, 1));
    ASSERT_TRUE(builds()); // nothing was added
    ASSERT_TRUE(addSampleInputs(*config, &given, 1));
    warned.errors.clear();
    EXPECT_FALSE(builds());
    ASSERT_FALSE(warned.errors.empty());
    expect_text(warned.errors.back(), "sample 0: input 'x' dimension 1 is 3, expected 4");
}

} // namespace ingot::test
