// SPDX-License-Identifier: Apache-2.0
// Determinism: equal runs give equal bits; with kDISTRIBUTIVE_INDEPENDENCE a row's result has the
// same bits at every position in the batch, among all neighbours, in batches of every size.
#include "NvInfer.h"
#include "api/runtime_fixture.h"
#include "ops/evaluator.h"

#include <array>
#include <functional>
#include <span>

namespace ingot::test {
namespace {

/// Numbers in [-1, 1) that a seed decides.
Tensor numbers(DType t, Shape shape, uint64_t seed) {
    Tensor out = Tensor::empty(t, std::move(shape));
    uint64_t state = 88172645463325252ULL + seed * 7919;
    for (int64_t i = 0; i < out.count(); ++i) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        out.set_f64(i, static_cast<double>(state % 8192) / 4096 - 1);
    }
    return out;
}

/// An operation on a batch of N rows, N from 1 to 40.
struct Work {
    const char* name;
    DType dtype;
    Shape row;
    Value (*build)(Graph& g, Value x);
};

Value weights(Graph& g, DType t, Shape shape, uint64_t seed = 5) {
    return ops::constant(g, numbers(t, std::move(shape), seed));
}

Value half_conv(Graph& g, Value x, int64_t groups) {
    ops::Conv c;
    c.strides = {1, 1};
    c.dilations = {1, 1};
    c.low = {1, 1};
    c.high = {1, 1};
    c.groups = groups;
    c.dtype = DType::F16;
    return ops::conv(g, c, x, weights(g, DType::F16, {8, groups == 1 ? 8 : 1, 3, 3}));
}

Value attend(Graph& g, Value x) {
    ops::Attention a;
    a.scale = 0.25;
    return ops::attention(g, a, x, x, x);
}

Value norm(Graph& g, Value x) {
    ops::LayerNorm a;
    a.axis = 1;
    return ops::layer_norm(g, a, x, weights(g, DType::F32, {70}));
}

Value running_sum(Graph& g, Value x) {
    Scan s;
    s.fn = "sum";
    s.axis = 1;
    return ops::scan(g, s, x);
}

const Work works[] = {
    {"Product",
     DType::F32,
     {67},
     [](Graph& g, Value x) {
         return ops::gelu(g, ops::matmul(g, x, weights(g, DType::F32, {67, 33})));
     }},
    {"HalfProduct",
     DType::F16,
     {512},
     [](Graph& g, Value x) {
         return ops::matmul(g, x, weights(g, DType::F16, {512, 24}), DType::F16);
     }},
    {"ProductOfThree",
     DType::F32,
     {3, 40},
     [](Graph& g, Value x) {
         return ops::matmul(g, x, weights(g, DType::F32, {40, 9}));
     }},
    {"ProductOfRows",
     DType::F32,
     {5, 24},
     [](Graph& g, Value x) { return ops::matmul(g, x, ops::transpose_last(g, x)); }},
    {"Convolution", DType::F16, {8, 6, 6}, [](Graph& g, Value x) { return half_conv(g, x, 1); }},
    {"Depthwise", DType::F16, {8, 6, 6}, [](Graph& g, Value x) { return half_conv(g, x, 8); }},
    {"Sum", DType::F32, {9000}, [](Graph& g, Value x) { return ops::reduce_sum(g, x, {1}); }},
    {"SumInside",
     DType::F32,
     {150, 6},
     [](Graph& g, Value x) { return ops::reduce_sum(g, x, {1}); }},
    {"SumOfColumns",
     DType::F32,
     {150, 20},
     [](Graph& g, Value x) { return ops::reduce_mean(g, x, {1}); }},
    {"Softmax", DType::F32, {300}, [](Graph& g, Value x) { return ops::softmax(g, x, 1); }},
    {"LayerNorm", DType::F32, {70}, norm},
    {"Attention", DType::F16, {2, 20, 16}, attend},
    {"RunningSum", DType::F32, {50}, running_sum},
};

using Bits = std::vector<std::byte>;

class ContextDeterminism : public RuntimeTest {
protected:
    std::unique_ptr<nvinfer1::ICudaEngine> engine_of(const Work& w, bool batch_invariant) {
        Graph g;
        Type t{w.dtype, {Dim::symbol("N")}};
        Shape least{1};
        Shape usual{8};
        Shape most{40};
        for (int64_t d : w.row) {
            t.dims.emplace_back(d);
            for (Shape* s : {&least, &usual, &most}) {
                s->push_back(d);
            }
        }
        Value x = g.add_input("x", t);
        g.add_output("y", w.build(g, x));
        api::BuildSettings settings;
        settings.batch_invariant = batch_invariant;
        Properties properties;
        api::put_build_settings(settings, properties);
        std::vector<Profile> profiles;
        if (gpu ==
            nullptr) { // for shapes of a profile the emulator would compile many kernels ahead
            profiles.push_back({{{"x", least, usual, most}}});
        }
        return load(*Engine::create(std::move(g), std::move(profiles), std::move(properties)));
    }

    /// The bytes of result row `place` of a batch of `rows`, in which that row of x is `probe` and
    /// the others are arbitrary.
    Bits row_of(nvinfer1::IExecutionContext& c, const Work& w, const Tensor& probe, int64_t rows,
                int64_t place) {
        Shape shape = w.row;
        shape.insert(shape.begin(), rows);
        Tensor x = numbers(w.dtype, shape, static_cast<uint64_t>(rows * 100 + place));
        size_t row = probe.bytes().size();
        std::memcpy(x.mutable_bytes().data() + row * static_cast<size_t>(place),
                    probe.bytes().data(), row);
        nvinfer1::Dims d{};
        d.nbDims = static_cast<int32_t>(shape.size());
        std::copy(shape.begin(), shape.end(), d.d);
        EXPECT_TRUE(c.setInputShape("x", d)) << logger.take_error();
        DeviceMemory own(gpu.get());
        void* in = own.allocate(static_cast<int64_t>(x.bytes().size()));
        std::memcpy(in, x.bytes().data(), x.bytes().size());
        int64_t bytes = c.getMaxOutputSize("y");
        EXPECT_GT(bytes, 0);
        auto* out = static_cast<std::byte*>(own.allocate(bytes));
        c.setTensorAddress("x", in);
        c.setTensorAddress("y", out);
        EXPECT_TRUE(c.enqueueV3(nullptr)) << logger.take_error();
        synchronize();
        int64_t of_row = bytes / rows;
        return {out + place * of_row, out + (place + 1) * of_row};
    }

    std::vector<int64_t> batches() const {
        return gpu != nullptr ? std::vector<int64_t>{2, 9, 20}
                              : std::vector<int64_t>{2, 3, 7, 15, 40};
    }

    /// The number of batches and positions that give the row a result other than alone.
    int differences(const Work& w, bool batch_invariant) {
        auto engine = engine_of(w, batch_invariant);
        EXPECT_NE(engine, nullptr) << logger.take_error();
        auto c = context(*engine);
        EXPECT_NE(c, nullptr) << logger.take_error();
        Tensor probe = numbers(w.dtype, w.row, 1);
        Bits alone = row_of(*c, w, probe, 1, 0);
        int count = 0;
        for (int64_t rows : batches()) {
            std::vector<int64_t> places{0, rows / 2, rows - 1};
            places.erase(std::unique(places.begin(), places.end()), places.end());
            for (int64_t place : places) {
                count += row_of(*c, w, probe, rows, place) == alone ? 0 : 1;
            }
        }
        return count;
    }
};

TEST_P(ContextDeterminism, ARowDoesNotDependOnItsBatch) {
    for (const Work& w : works) {
        EXPECT_EQ(differences(w, true), 0) << w.name;
    }
}

TEST_P(ContextDeterminism, WithoutTheFlagARowMayDependOnItsBatch) {
    int all = 0;
    for (size_t i = 0; i < std::size(works) && all == 0; ++i) {
        all += differences(works[i], false);
    }
    EXPECT_GT(all, 0);
}

TEST_P(ContextDeterminism, TwoRunsAreBitEqual) {
    for (const Work& w : std::span(works).first(gpu != nullptr ? 3 : std::size(works))) {
        auto engine = engine_of(w, false);
        auto one = context(*engine);
        auto two = context(*engine);
        auto other_engine = engine_of(w, false);
        auto three = context(*other_engine);
        Tensor probe = numbers(w.dtype, w.row, 3);
        Bits first = row_of(*one, w, probe, 5, 2);
        EXPECT_EQ(row_of(*one, w, probe, 5, 2), first) << w.name;
        EXPECT_EQ(row_of(*two, w, probe, 5, 2), first) << w.name;
        EXPECT_EQ(row_of(*three, w, probe, 5, 2), first) << w.name;
    }
}

/// As row_of() alone and in batches, for columns: the batch is the innermost axis of x, f32[K,N].
struct ColumnWork {
    const char* name;
    int64_t size; // K
    Value (*build)(Graph& g, Value x);
};

const ColumnWork column_works[] = {
    {"Sum", 150, [](Graph& g, Value x) { return ops::reduce_sum(g, x, {0}); }},
    {"LongSum", 5000, [](Graph& g, Value x) { return ops::reduce_sum(g, x, {0}); }},
    {"SumAround", 150, // over two axes with the batch between them
     [](Graph& g, Value x) {
         Value t = ops::reshape(g, ops::mul(g, x, 0.37), {15, 10, g.type(x).dims[1]});
         return ops::reduce_sum(g, ops::add(g, ops::permute(g, t, {0, 2, 1}), 1.0), {0, 2});
     }},
    {"SumBehindAMap", 152,
     [](Graph& g, Value x) { return ops::reduce_sum(g, ops::mul(g, x, 0.37), {0}); }},
    {"Softmax", 300, [](Graph& g, Value x) { return ops::softmax(g, x, 0); }},
    {"NormBehindATranspose", 96,
     [](Graph& g, Value x) {
         ops::LayerNorm a;
         a.axis = 1;
         Value t = ops::sqrt(g, ops::add(g, ops::permute(g, x, {1, 0}), 2.0));
         return ops::permute(g, ops::layer_norm(g, a, t, weights(g, DType::F32, {96})), {1, 0});
     }},
};

TEST_P(ContextDeterminism, AColumnDoesNotDependOnItsBatch) {
    for (const ColumnWork& w : column_works) {
        SCOPED_TRACE(w.name);
        Graph g;
        Value x = g.add_input("x", {DType::F32, {Dim(w.size), Dim::symbol("N")}});
        g.add_output("y", w.build(g, x));
        api::BuildSettings settings;
        settings.batch_invariant = true;
        Properties properties;
        api::put_build_settings(settings, properties);
        auto engine = load(*Engine::create(std::move(g), {}, std::move(properties)));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        auto c = context(*engine);
        Tensor probe = numbers(DType::F32, {w.size}, 1);
        std::vector<float> alone;
        for (auto [columns, place] : {std::pair<int64_t, int64_t>{1, 0},
                                      {2, 1},
                                      {3, 0},
                                      {8, 5},
                                      {15, 14},
                                      {16, 3},
                                      {33, 32},
                                      {64, 40}}) {
            Tensor t = numbers(DType::F32, {w.size, columns}, static_cast<uint64_t>(columns));
            for (int64_t i = 0; i < w.size; ++i) {
                t.set_f64(i * columns + place, probe.get_f64(i));
            }
            std::span<const float> in = t.as<float>();
            ASSERT_TRUE(c->setInputShape("x", dims({w.size, columns})));
            auto rows = static_cast<size_t>(c->getMaxOutputSize("y") / 4 / columns);
            void* out = memory->allocate(c->getMaxOutputSize("y"));
            c->setTensorAddress("x", memory->floats({in.begin(), in.end()}));
            c->setTensorAddress("y", out);
            ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
            synchronize();
            std::vector<float> all = values_at(out, rows * static_cast<size_t>(columns));
            std::vector<float> own;
            for (size_t r = 0; r < rows; ++r) {
                own.push_back(all[r * static_cast<size_t>(columns) + static_cast<size_t>(place)]);
            }
            alone = alone.empty() ? own : alone;
            EXPECT_EQ(own, alone) << columns << " columns, place " << place;
        }
    }
}

/// A product of [N, 67], built by the API.
struct Built {
    explicit Built(nvinfer1::ILogger& logger) : builder(nvinfer1::createInferBuilder(logger)) {
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
        nvinfer1::ITensor* x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims({-1, 67}));
        nvinfer1::IConstantLayer* c = network->addConstant(
            dims({67, 33}), {nvinfer1::DataType::kFLOAT, w.bytes().data(), w.count()});
        nvinfer1::ILayer* product =
            network->addMatrixMultiply(*x, nvinfer1::MatrixOperation::kNONE, *c->getOutput(0),
                                       nvinfer1::MatrixOperation::kNONE);
        product->getOutput(0)->setName("y");
        network->markOutput(*product->getOutput(0));
        add_profile();
    }
    void add_profile() {
        nvinfer1::IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions("x", nvinfer1::OptProfileSelector::kMIN, dims({1, 67}));
        p->setDimensions("x", nvinfer1::OptProfileSelector::kOPT, dims({8, 67}));
        p->setDimensions("x", nvinfer1::OptProfileSelector::kMAX, dims({40, 67}));
        config->addOptimizationProfile(p);
    }
    std::unique_ptr<nvinfer1::IHostMemory> build() {
        return std::unique_ptr<nvinfer1::IHostMemory>(
            builder->buildSerializedNetwork(*network, *config));
    }
    Tensor w = numbers(DType::F32, {67, 33}, 5);
    std::unique_ptr<nvinfer1::IBuilder> builder;
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
    std::unique_ptr<nvinfer1::IBuilderConfig> config;
};

TEST_P(ContextDeterminism, TheBuilderPassesTheFlagOn) {
    if (gpu != nullptr) {
        GTEST_SKIP() << "the emulator would compile the kernels of the whole profile";
    }
    Built b(logger);
    b.config->setFlag(nvinfer1::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
    auto bytes = b.build();
    ASSERT_NE(bytes, nullptr) << logger.take_error();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    auto c = context(*engine);
    Work w{"Product", DType::F32, {67}, nullptr};
    Tensor probe = numbers(DType::F32, {67}, 1);
    Bits alone = row_of(*c, w, probe, 1, 0);
    for (int64_t rows : batches()) {
        EXPECT_EQ(row_of(*c, w, probe, rows, rows - 1), alone) << rows;
    }
}

TEST_P(ContextDeterminism, TheFlagAllowsOneProfile) {
    Built b(logger);
    b.add_profile();
    b.config->setFlag(nvinfer1::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
    EXPECT_EQ(b.build(), nullptr);
    EXPECT_EQ(
        logger.take_error(),
        "IBuilder::buildSerializedNetwork: kDISTRIBUTIVE_INDEPENDENCE allows one optimisation "
        "profile, the configuration has 2: clear the flag or build an engine each");
    b.config->clearFlag(nvinfer1::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
    EXPECT_NE(b.build(), nullptr) << logger.take_error();
}

TEST_P(ContextDeterminism, TwoBuildsAreBitEqual) {
    Built one(logger);
    Built two(logger);
    auto a = one.build();
    auto b = two.build();
    auto again = one.build();
    ASSERT_TRUE(a != nullptr && b != nullptr && again != nullptr) << logger.take_error();
    ASSERT_EQ(a->size(), b->size());
    EXPECT_EQ(std::memcmp(a->data(), b->data(), a->size()), 0);
    ASSERT_EQ(a->size(), again->size());
    EXPECT_EQ(std::memcmp(a->data(), again->data(), a->size()), 0);
}

/// Random numbers, 16 of them.
std::vector<float> drawn(nvinfer1::IExecutionContext& c, DeviceMemory& memory) {
    void* y = memory.allocate(64);
    c.setTensorAddress("y", y);
    return c.enqueueV3(nullptr) ? values_at(y, 16) : std::vector<float>{};
}

TEST_P(ContextDeterminism, FillDrawsAnewInEachRunOfAContext) {
    for (auto op :
         {nvinfer1::FillOperation::kRANDOM_UNIFORM, nvinfer1::FillOperation::kRANDOM_NORMAL}) {
        std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
        std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
        std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
        nvinfer1::IFillLayer* fill = network->addFill(dims({16}), op, nvinfer1::DataType::kFLOAT);
        ASSERT_NE(fill, nullptr) << logger.take_error();
        fill->getOutput(0)->setName("y");
        network->markOutput(*fill->getOutput(0));
        std::unique_ptr<nvinfer1::IHostMemory> bytes(
            builder->buildSerializedNetwork(*network, *config));
        ASSERT_NE(bytes, nullptr) << logger.take_error();
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
        auto one = context(*engine);
        auto two = context(*engine);
        std::vector<float> first = drawn(*one, *memory);
        std::vector<float> second = drawn(*one, *memory);
        ASSERT_EQ(first.size(), 16U) << logger.take_error();
        EXPECT_NE(first, second);
        // Each context has its own state with the same start.
        EXPECT_EQ(drawn(*two, *memory), first);
        EXPECT_EQ(drawn(*two, *memory), second);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextDeterminism, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
