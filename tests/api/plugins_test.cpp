// SPDX-License-Identifier: Apache-2.0
// IPluginV3 as a layer: built, serialised, made again by its creator, and run on the CPU and on an
// emulated GPU.
#include "api/plugin_fixture.h"
#include "ops/plugin.h"

namespace ingot::test {
namespace {

class Plugins : public PluginTest {};

TEST_P(Plugins, ElementwiseOfTwoTypes) {
    Registered<Scale> registered;
    {
        Scale plugin;
        plugin.factor = 2.5F;
        plugin.offset = 1;
        ASSERT_TRUE(add({&input("x", {-1, 3})}, plugin));
    } // the network has a clone
    profile("x", {1, 3}, {8, 3});
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    EXPECT_EQ(plugin_log().created, "factor:1 offset:1 ");
    EXPECT_EQ(plugin_log().configured[0], (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(plugin_log().configured[1], (std::vector<int64_t>{8, 3}));
    feed<float>("x", {1, 3}, {1, 2, 3});
    EXPECT_EQ(run<float>(3), (std::vector<float>{3.5, 6, 8.5}));
    feed<float>("x", {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(run<float>(6), (std::vector<float>{3.5, 6, 8.5, 11, 13.5, 16}));
    EXPECT_EQ(run<float>(6)[0], 3.5F);
    EXPECT_EQ(plugin_log().attached, 1);
    EXPECT_EQ(plugin_log().shape_changes, 2);
    EXPECT_EQ(plugin_log().runs, 3);

    network.reset(builder->createNetworkV2(0));
    config.reset(builder->createBuilderConfig());
    Scale plugin;
    plugin.factor = 3;
    ASSERT_TRUE(add({&input("x", {2}, nv::DataType::kINT32)}, plugin));
    EXPECT_EQ(network->getLayer(0)->getOutput(0)->getType(), nv::DataType::kINT32);
    EXPECT_EQ(network->getLayer(0)->getType(), nv::LayerType::kPLUGIN_V3);
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<int32_t>("x", {2}, {5, -7});
    EXPECT_EQ(run<int32_t>(2), (std::vector<int32_t>{15, -21}));
}

TEST_P(Plugins, StandBetweenOtherLayersInSixteenBits) {
    Registered<Scale> registered;
    Scale plugin;
    plugin.factor = 4;
    nv::ITensor& x = input("x", {4});
    nv::ITensor* relu = network->addActivation(x, nv::ActivationType::kRELU)->getOutput(0);
    nv::IPluginV3Layer* layer = network->addPluginV3(&relu, 1, nullptr, 0, plugin);
    ASSERT_NE(layer, nullptr);
    nv::ITensor& scaled = *layer->getOutput(0);
    mark(*network->addElementWise(scaled, *relu, nv::ElementWiseOperation::kSUM));
    config->setFlag(nv::BuilderFlag::kFP16); // the plugin takes floats: it keeps them
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {4}, {-1, 0.5, 2, 3});
    EXPECT_EQ(run<float>(4), (std::vector<float>{0, 2.5, 10, 15}));
}

TEST_P(Plugins, WorkspaceAndFieldsOfManyElements) {
    Registered<WeightedRows> registered;
    WeightedRows plugin;
    plugin.weights.assign(40, 0.5F);
    plugin.weights[39] = 10;
    ASSERT_TRUE(add({&input("x", {-1, 40})}, plugin));
    profile("x", {1, 40}, {3, 40});
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    EXPECT_EQ(plugin_log().created, "weights:40 shape:1 ");
    feed<float>("x", {2, 40}, std::vector<float>(80, 1));
    EXPECT_EQ(run<float>(2), (std::vector<float>{29.5, 29.5}));
    feed<float>("x", {3, 40}, std::vector<float>(120, 2));
    EXPECT_EQ(run<float>(3), (std::vector<float>{59, 59, 59}));
    // The same network gives the same bytes: padding between fields does not matter.
    std::string first(static_cast<const char*>(bytes->data()), bytes->size());
    ASSERT_TRUE(build());
    EXPECT_EQ(first, std::string(static_cast<const char*>(bytes->data()), bytes->size()));
}

class Outputs : public nv::IOutputAllocator {
public:
    explicit Outputs(DeviceMemory& m) : memory(m) {}
    void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t,
                                cudaStream_t) override {
        return address = memory.allocate(static_cast<int64_t>(size));
    }
    void notifyShape(const char*, const nv::Dims& d) noexcept override { shape = sizes(d); }
    DeviceMemory& memory;
    void* address = nullptr;
    std::vector<int64_t> shape;
};

TEST_P(Plugins, SizesThatThePluginFindsOut) {
    Registered<Positive> registered;
    Positive plugin;
    nv::ITensor* x = &input("x", {-1});
    nv::IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    // Later layers see the size, too.
    mark(*network->addUnary(*layer->getOutput(0), nv::UnaryOperation::kNEG));
    layer->getOutput(1)->setName("count");
    network->markOutput(*layer->getOutput(1));
    profile("x", {1}, {8});
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    Outputs out(*memory);
    Outputs count(*memory);
    context->setOutputAllocator("y0", &out);
    context->setOutputAllocator("count", &count);
    for (int i = 0; i < 2; ++i) {
        feed<float>("x", {5}, {1, -2, 3, -4, 5});
        ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.take_error();
        EXPECT_EQ(out.shape, (std::vector<int64_t>{3}));
        EXPECT_EQ(values_at(out.address, 3), (std::vector<float>{-1, -3, -5}));
        EXPECT_EQ(*static_cast<int64_t*>(count.address), 3);
        feed<float>("x", {2}, {-1, -2});
        ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.take_error();
        EXPECT_EQ(out.shape, (std::vector<int64_t>{0}));
    }
    Positive::lie = 4;
    feed<float>("x", {2}, {1, -2});
    EXPECT_FALSE(context->enqueueV3(nullptr));
    Positive::lie = 0;
    EXPECT_NE(
        logger.take_error().find("plugin 'Positive' wrote size 5 to output 1, expected 0 to 2"),
        std::string::npos);
}

TEST_P(Plugins, ShapeInputs) {
    Registered<PadList> registered;
    PadList plugin;
    nv::ITensor& x = input("x", {-1});
    int32_t values[] = {2};
    nv::ITensor* pads =
        network->addConstant(dims({1}), {nv::DataType::kINT32, values, 1})->getOutput(0);
    ASSERT_TRUE(add({&x}, plugin, {pads})) << logger.take_error();
    EXPECT_TRUE(pads->isShapeTensor());
    profile("x", {1}, {8});
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {2}, {1, 2});
    EXPECT_EQ(run<float>(4), (std::vector<float>{1, 2, 0, 0}));
}

TEST_P(Plugins, UpdateAnInputInPlace) {
    Registered<InPlace> registered;
    InPlace plugin;
    nv::ITensor* x = &input("x", {3});
    nv::IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    // The input is read after the plugin, too.
    mark(*network->addElementWise(*layer->getOutput(0), *x, nv::ElementWiseOperation::kPROD));
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {3}, {1, 2, 3});
    EXPECT_EQ(run<float>(3), (std::vector<float>{2, 6, 12}));
}

TEST_P(Plugins, OutputsTellWhichInputTheyUpdate) {
    Registered<InPlace> registered;
    InPlace plugin;
    ASSERT_TRUE(add({&input("x", {3})}, plugin));
    nv::ITensor& cache = input("cache", {1, 1, 2, 1});
    int32_t at[] = {1};
    nv::ILayer* index = network->addConstant(dims({1}), {nv::DataType::kINT32, at, 1});
    nv::ILayer* kv = network->addKVCacheUpdate(cache, input("token", {1, 1, 1, 1}),
                                               *index->getOutput(0), nv::KVCacheMode::kLINEAR);
    kv->getOutput(0)->setName("updated");
    network->markOutput(*kv->getOutput(0));
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    EXPECT_STREQ(engine->getAliasedInputTensor("y0"), "x");
    EXPECT_STREQ(engine->getAliasedInputTensor("updated"), "cache");
    EXPECT_EQ(engine->getAliasedInputTensor("x"), nullptr);
    // At one address.
    feed<float>("x", {3}, {1, 2, 3});
    feed<float>("token", {1, 1, 1, 1}, {7});
    float* both = memory->floats({5, 6});
    ASSERT_TRUE(context->setTensorAddress("cache", both));
    ASSERT_TRUE(context->setTensorAddress("updated", both));
    EXPECT_EQ(run<float>(3), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(values_at(both, 2), (std::vector<float>{5, 7}));
}

/// Nothing evaluates a plugin ahead of time.
TEST_P(Plugins, OfConstantsAlone) {
    Registered<Scale> registered;
    Scale plugin;
    plugin.factor = 2;
    float values[] = {1, 2};
    nv::ITensor* c =
        network->addConstant(dims({2}), {nv::DataType::kFLOAT, values, 2})->getOutput(0);
    nv::IPluginV3Layer* layer = network->addPluginV3(&c, 1, nullptr, 0, plugin);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    nv::ITensor& x = input("x", {2});
    mark(*network->addElementWise(x, *layer->getOutput(0), nv::ElementWiseOperation::kSUM));
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    EXPECT_EQ(plugin_log().runs, 0);
    feed<float>("x", {2}, {10, 20});
    EXPECT_EQ(run<float>(2), (std::vector<float>{12, 24}));
}

TEST_P(Plugins, InsideALoop) {
    Registered<Scale> registered;
    Scale plugin;
    plugin.factor = 2;
    nv::ITensor& x = input("x", {2});
    int32_t trips = 3;
    nv::ITensor& count =
        *network->addConstant(nv::Dims{0, {}}, {nv::DataType::kINT32, &trips, 1})->getOutput(0);
    nv::ILoop* loop = network->addLoop();
    loop->addTripLimit(count, nv::TripLimit::kCOUNT);
    nv::IRecurrenceLayer* state = loop->addRecurrence(x);
    nv::ITensor* now = state->getOutput(0);
    nv::IPluginV3Layer* layer = network->addPluginV3(&now, 1, nullptr, 0, plugin);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    state->setInput(1, *layer->getOutput(0));
    mark(*loop->addLoopOutput(*now, nv::LoopOutput::kLAST_VALUE));
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {2}, {1, 5});
    EXPECT_EQ(run<float>(2), (std::vector<float>{8, 40}));
}

TEST_P(Plugins, ContextsHaveClonesAndTheEngineMayGoFirst) {
    Registered<Scale> registered;
    Scale plugin;
    plugin.factor = 2;
    ASSERT_TRUE(add({&input("x", {1})}, plugin));
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    auto first = std::move(context);
    context.reset(engine->createExecutionContext());
    engine.reset();
    bytes.reset();
    for (int i = 0; i < 2; ++i) {
        feed<float>("x", {1}, {3});
        EXPECT_EQ(run<float>(1)[0], 6);
        std::swap(first, context);
    }
    EXPECT_EQ(plugin_log().attached, 2);
}

TEST_P(Plugins, ACreatorOfTheRuntimeOrInANamespace) {
    TestCreator<Scale> creator;
    Scale plugin;
    ASSERT_TRUE(add({&input("x", {1})}, plugin));
    ASSERT_TRUE(build());
    EXPECT_FALSE(load_engine());
    EXPECT_EQ(
        logger.take_error(),
        "IRuntime::deserializeCudaEngine: node '(Unnamed Layer* 0) [PluginV3]': plugin 'Scale' "
        "version '1': the engine needs it, and no creator of that name is registered; register "
        "its creator (IPluginRegistry::registerCreator() or loadLibrary()) before the engine is "
        "loaded");
    nv::IPluginRegistry& own = runtime->getPluginRegistry();
    EXPECT_NE(&own, getPluginRegistry());
    ASSERT_TRUE(own.registerCreator(creator, "mine"));
    EXPECT_FALSE(load_engine());
    EXPECT_NE(logger.take_error().find("registered are version '1' of namespace 'mine'"),
              std::string::npos);
    ASSERT_TRUE(own.registerCreator(creator, ""));
    EXPECT_EQ(getPluginRegistry()->getCreator("Scale", "1"), nullptr);
    EXPECT_TRUE(load_engine()) << logger.take_error();
    engine.reset();
    context.reset();
    // The runtime finds the process's creators, unless that is switched off.
    Registered<Positive> global;
    EXPECT_EQ(own.getCreator("Positive", "1"), &global.creator);
    int32_t all = 0;
    int32_t outer = 0;
    own.getAllCreatorsRecursive(&all);
    getPluginRegistry()->getAllCreators(&outer);
    EXPECT_EQ(all, outer + 2);
    own.setParentSearchEnabled(false);
    EXPECT_EQ(own.getCreator("Positive", "1"), nullptr);
    own.getAllCreatorsRecursive(&all);
    EXPECT_EQ(all, 2);
}

// --- what fails ----------------------------------------------------------------------------------

struct Failure {
    const char* where;
    const char* message; // a part of it
};

const Failure refused_by_add[] = {
    {"core", "IPluginV3::getCapabilityInterface(kCORE) gave nullptr"},
    {"build", "getCapabilityInterface(kBUILD) gave nullptr, which a network needs"},
    {"clone", "IPluginV3::clone() gave nullptr"},
    {"name", "the plugin has no name"},
    {"outputs", "IPluginV3OneBuild::getNbOutputs() returned 0, expected at least 1"},
    {"type", "data type 99 does not exist"},
    {"types", "IPluginV3OneBuild::getOutputDataTypes() returned 2, expected 0"},
    {"shapes", "IPluginV3OneBuild::getOutputShapes() returned 3, expected 0"},
    {"rank", "getOutputShapes() gave output 0 9 dimensions, expected 0 to 8"},
    {"null", "dimension 0 of output 0 is nullptr (an operation failed: division by zero)"},
    {"size", "IExprBuilder::declareSizeTensor() names output 0, which is f32[?0]"},
    {"format", "supportsFormatCombination() refuses input 0 as FLOAT in LINEAR format"},
};
const Failure refused_by_build[] = {
    {"configure", "IPluginV3OneBuild::configurePlugin() returned 4, expected 0"},
    {"workspace", "IPluginV3OneBuild::getWorkspaceSize() returned 18446744073709551615"},
    {"fields", "getFieldsToSerialize(): field 'weights': has 3 elements at nullptr"},
    {"field type", "field 'weights': plugin: a field has type 40, expected 0 to 13"},
};
const Failure refused_by_run[] = {
    {"attach", "plugin 'Failing' version '1': IPluginV3OneRuntime::attachToContext() gave nullptr"},
    {"onShapeChange",
     "plugin 'Failing' version '1': IPluginV3OneRuntime::onShapeChange() returned 6"},
    {"enqueue", "node 'custom' (plugin): plugin 'Failing' version '1': "
                "IPluginV3OneRuntime::enqueue() returned 7, expected 0"},
};

TEST_P(Plugins, FailuresAreReported) {
    Registered<Failing> registered;
    Failing plugin;
    nv::ITensor* x = &input("x", {2});
    auto expect = [this](const Failure& f) {
        std::string error = logger.take_error();
        EXPECT_NE(error.find(f.message), std::string::npos) << f.where << ": " << error;
    };
    for (const Failure& f : refused_by_add) {
        Failing::where = f.where;
        EXPECT_EQ(network->addPluginV3(&x, 1, nullptr, 0, plugin), nullptr) << f.where;
        expect(f);
    }
    EXPECT_EQ(network->getNbLayers(), 0);
    Failing::where = "";
    nv::IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    layer->setName("custom");
    mark(*layer);
    for (const Failure& f : refused_by_build) {
        Failing::where = f.where;
        EXPECT_FALSE(build()) << f.where;
        expect(f);
    }
    Failing::where = "";
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {2}, {1, 2});
    ASSERT_TRUE(context->setTensorAddress("y0", memory->allocate(8)));
    for (const Failure& f : refused_by_run) {
        Failing::where = f.where;
        EXPECT_FALSE(context->enqueueV3(nullptr)) << f.where;
        expect(f);
    }
    Failing::where = "";
    EXPECT_EQ(run<float>(2), (std::vector<float>{1, 2})); // it recovers
}

/// Engines from strangers: types, shapes and bounds differ from the plugin's.
TEST_P(Plugins, AnEngineThatLiesIsRefused) {
    Registered<Scale> registered;
    Registered<Positive> more;
    struct Lie {
        void (*change)(Plugin&);
        const char* message;
    };
    const Lie lies[] = {
        {[](Plugin& p) { p.sizes = {1}; }, "output 0 is f32[4], in the engine f32[1]"},
        {[](Plugin& p) { p.dtypes = {"i8"}; }, "output 0 is f32[4], in the engine i8[4]"},
        {[](Plugin& p) {
             p.field_lengths = {1, 2};
         },
         "field"},
        {[](Plugin& p) {
             p.field_types = {1, 1};
         },
         "createPlugin() gave nullptr"},
        {[](Plugin& p) {
             p.field_types = {1, 99};
         },
         "a field has type 99"},
        {[](Plugin& p) { p.version = "2"; }, "registered are version '1' of namespace ''"},
        {[](Plugin& p) { p.ranks = {7}; }, "has rank 7"},
        {[](Plugin& p) { p.aliases = {5}; }, "updates input 5 of 1"},
        {[](Plugin& p) { p.generation = 2; }, "the engine was built with an IPluginV2"},
        {[](Plugin& p) {
             p.name = "Positive";
             p.dtypes = {"f32", "i64"};
             p.ranks = {1, 0};
             p.sizes = {Dim::symbol("?0")};
             p.symbols = {Dim::symbol("?0")};
             p.size_results = {1};
             p.most = {1}; // room for one of four
         },
         "at most 4, in the engine in output 1 and at most 1"},
    };
    for (const Lie& lie : lies) {
        Plugin p;
        p.name = "Scale";
        p.version = "1";
        float factor = 2;
        int32_t offset = 0;
        PluginFieldView fields[] = {{"factor", 1, 1, std::as_bytes(std::span(&factor, 1))},
                                    {"offset", 5, 1, std::as_bytes(std::span(&offset, 1))}};
        set_plugin_fields(p, fields);
        p.dtypes = {"f32"};
        p.ranks = {1};
        p.sizes = {4};
        lie.change(p);
        Graph g;
        Value x = g.add_input("x", parse_type("f32[4]"));
        bool refused = false;
        std::string error;
        try {
            g.add_output("y0", g.add(plugin_def, p, std::array{x})[0]);
            AlignedBytes file = engine_bytes(*Engine::create(std::move(g), {}, {}));
            std::unique_ptr<nv::ICudaEngine> loaded = load(file);
            auto c = loaded == nullptr ? nullptr : RuntimeTest::context(*loaded);
            float values[4] = {1, 2, 3, 4};
            refused = c == nullptr || !c->setTensorAddress("x", values) ||
                      !c->setTensorAddress("y0", memory->allocate(64)) || !c->enqueueV3(nullptr);
            error = logger.take_error();
        } catch (const Error& e) {
            refused = true;
            error = e.what();
        }
        EXPECT_TRUE(refused) << lie.message;
        EXPECT_NE(error.find(lie.message), std::string::npos) << error;
    }
}

INSTANTIATE_TEST_SUITE_P(Places, Plugins, testing::Bool(), [](const auto& place) {
    return std::string(place.param ? "EmulatedGpu" : "Cpu");
});

} // namespace
} // namespace ingot::test
