// SPDX-License-Identifier: Apache-2.0
// Sizes with one value in all profiles: constants everywhere, from the network's inputs on.
#include "api/network_fixture.h"
#include "ingot.h"
#include "ir/rewrite.h"
#include "onnx/input_sizes.h"
#include "source_dir.h"
#include "workflow/build.h"

#include <stdexcept>

namespace ingot::test {

namespace {

using Sizes = std::vector<int64_t>;

class FixedSizes : public NetworkTest {
protected:
    void profile(std::initializer_list<int64_t> least, std::initializer_list<int64_t> most,
                 const char* name = "x") {
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions(name, nv::OptProfileSelector::kMIN, dims(least));
        p->setDimensions(name, nv::OptProfileSelector::kOPT, dims(most));
        p->setDimensions(name, nv::OptProfileSelector::kMAX, dims(most));
        ASSERT_GE(config->addOptimizationProfile(p), 0);
    }
    std::unique_ptr<nv::ICudaEngine> on_cpu() {
        ingot::setDevice(*config, Device::kCPU);
        std::unique_ptr<nv::ICudaEngine> e(builder->buildEngineWithConfig(*network, *config));
        EXPECT_NE(e, nullptr) << (logger.errors.empty() ? "" : logger.errors.back());
        return e;
    }
    /// x, [-1,-1,2] of which the first two are named, squared.
    nv::ITensor& square() {
        nv::ITensor& x = input("x", {-1, -1, 2});
        auto* product = network->addElementWise(x, x, nv::ElementWiseOperation::kPROD);
        product->getOutput(0)->setName("y");
        network->markOutput(*product->getOutput(0));
        return x;
    }
};

TEST_F(FixedSizes, AProfileWithoutAChoiceFixesAllShapes) {
    square();
    profile({2, 3, 2}, {2, 3, 2});
    auto engine = on_cpu();
    EXPECT_EQ(list(engine->getTensorShape("x")), (Sizes{2, 3, 2}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Sizes{2, 3, 2}));
    EXPECT_EQ(list(engine->getProfileShape("x", 0, nv::OptProfileSelector::kMIN)),
              (Sizes{2, 3, 2}));
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    EXPECT_EQ(list(c->getTensorShape("x")), (Sizes{2, 3, 2}));
    EXPECT_EQ(list(c->getTensorShape("y")), (Sizes{2, 3, 2}));
    EXPECT_TRUE(c->allInputDimensionsSpecified());
    EXPECT_EQ(c->inferShapes(0, nullptr), 0);
    // No setInputShape(): all sizes are known.
    std::array<float, 12> x{3, 2, 1};
    std::array<float, 12> y{};
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.errors.back();
    EXPECT_EQ(y[0], 9);
    EXPECT_EQ(y[1], 4);
    EXPECT_TRUE(c->setInputShape("x", dims({2, 3, 2})));
    EXPECT_FALSE(c->setInputShape("x", dims({2, 2, 2})));
    EXPECT_EQ(logger.errors.back(), "IExecutionContext::setInputShape: input 'x' dimension 1 is 2, "
                                    "expected 3");
}

TEST_F(FixedSizes, OnlySizesThatAllProfilesAgreeOnAreFixed) {
    square();
    profile({2, 1, 2}, {2, 4, 2});
    profile({2, 5, 2}, {2, 5, 2});
    auto engine = on_cpu();
    EXPECT_EQ(list(engine->getTensorShape("x")), (Sizes{2, -1, 2}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Sizes{2, -1, 2}));
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    EXPECT_EQ(list(c->getTensorShape("x")), (Sizes{2, -1, 2}));
}

TEST_F(FixedSizes, ANameHasOneSizeAtEveryInput) {
    square().setDimensionName(0, "batch");
    nv::ITensor& z = input("z", {-1});
    z.setDimensionName(0, "batch");
    network->markOutput(*network->addActivation(z, nv::ActivationType::kRELU)->getOutput(0));
    for (bool open : {true, false}) {
        config->reset();
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        for (int i = 0; i < 3; ++i) {
            auto select = static_cast<nv::OptProfileSelector>(i);
            p->setDimensions("x", select, dims({2, 3, 2}));
            p->setDimensions("z", select, dims({open && i == 0 ? 1 : 2}));
        }
        ASSERT_EQ(config->addOptimizationProfile(p), 0);
        // A size that one input leaves open is open everywhere.
        EXPECT_EQ(list(on_cpu()->getTensorShape("z")), (Sizes{open ? -1 : 2}));
        EXPECT_EQ(list(on_cpu()->getTensorShape("x")), (Sizes{open ? -1 : 2, 3, 2}));
    }
}

TEST_F(FixedSizes, ACompilerThatKnowsASizeTakesABranchAway) {
    // The condition depends on whether the second size is 3: with a known size it is a constant.
    nv::ITensor& x = square();
    auto result = [&](nv::ILayer* layer) -> nv::ITensor& {
        if (layer == nullptr) {
            throw std::runtime_error(logger.errors.back());
        }
        return *layer->getOutput(0);
    };
    nv::ITensor& second = result(network->addGather(result(network->addShape(x)), scalar(1), 0));
    nv::ITensor& is_three =
        result(network->addElementWise(second, scalar(3), nv::ElementWiseOperation::kEQUAL));
    nv::IIfConditional* either = network->addIfConditional();
    either->setCondition(is_three);
    nv::ITensor& inside = result(either->addInput(x));
    nv::ITensor& less = result(network->addUnary(inside, nv::UnaryOperation::kNEG));
    nv::ITensor& more = result(network->addUnary(inside, nv::UnaryOperation::kABS));
    network->markOutput(result(either->addOutput(more, less)));
    auto conditionals = [&] {
        std::shared_ptr<const Engine> engine = build();
        int count = engine == nullptr ? -1 : 0;
        for (const Node& n :
             engine == nullptr ? std::span<const Node>() : engine->graph().nodes()) {
            count += n.def->name == "if" ? 1 : 0;
        }
        return count;
    };
    profile({2, 1, 2}, {2, 3, 2});
    EXPECT_EQ(conditionals(), 1);
    config->reset();
    profile({2, 3, 2}, {2, 3, 2});
    EXPECT_EQ(conditionals(), 0);
}

// --- models --------------------------------------------------------------------------------------

onnx::ValueInfo open_input(std::string name, std::vector<onnx::ShapeDim> sizes) {
    onnx::ValueInfo v;
    v.name = std::move(name);
    v.kind = onnx::ValueKind::Tensor;
    v.elem_type = 1;
    v.has_shape = true;
    v.dims = std::move(sizes);
    return v;
}

TEST(FixedInputSizes, AreWrittenIntoTheModel) {
    onnx::Model m;
    m.graph.inputs = {open_input("x", {{-1, "n"}, {-1, ""}, {-1, "m"}}),
                      open_input("y", {{-1, "n + 1"}, {-1, "m + n"}, {7, ""}}),
                      open_input("z", {{-1, "n"}})};
    Profile p{{{"x", {2, 4, 1}, {2, 4, 3}, {2, 4, 5}},
               {"z", {1, 2}, {1, 2}, {1, 2}}, // of another rank: for check_profile()
               {"no such input", {1}, {1}, {1}}}};
    onnx::fix_input_sizes(m, {p});
    auto sizes = [&](size_t i) {
        std::string all;
        for (const onnx::ShapeDim& d : m.graph.inputs[i].dims) {
            all += (all.empty() ? "" : ",") + (d.value >= 0 ? std::to_string(d.value) : d.param);
        }
        return all;
    };
    EXPECT_EQ(sizes(0), "2,4,m");
    EXPECT_EQ(sizes(1), "3,m+2,7");
    EXPECT_EQ(sizes(2), "2");
}

TEST(FixedInputSizes, AModelIsBuiltWithThem) {
    std::string path = source_dir() + "/examples/digits/digits.onnx";
    auto open = build_engine(path, {});
    const Graph& g = open->graph();
    Shape shape = default_shape(g, 0, {});
    ASSERT_FALSE(as_const(g.type(g.inputs()[0]).dims).has_value());
    shape[0] = 5;
    BuildConfig config;
    config.profiles = {{{{g.value_name(g.inputs()[0]), shape, shape, shape}}}};
    auto engine = build_engine(path, config);
    EXPECT_EQ(as_const(engine->graph().type(engine->graph().inputs()[0]).dims), shape);
    EXPECT_TRUE(input_symbols(engine->graph()).empty());
}

} // namespace

} // namespace ingot::test
