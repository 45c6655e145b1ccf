// SPDX-License-Identifier: Apache-2.0
// ITensor::setAllowedFormats: a program that requests I/O formats as in TensorRT's sample; the
// engine's answers, strides, sizes and numbers, on the CPU and on a GPU, against plain loops over
// element positions; and the failing builds.
#include "NvInfer.h"
#include "api/runtime_fixture.h"
#include "engine/format_reference.h"

#include <map>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;
using nv::DataType;
using nv::TensorFormat;

struct Format {
    TensorFormat format;
    std::string_view layout; // of format_reference.h
    DataType type;
    DType dtype;
    std::string description;
};

const std::vector<Format>& vector_formats() {
    using enum TensorFormat;
    static const std::vector<Format> all = {
        {kCHW2, "chw2", DataType::kHALF, DType::F16,
         "HALF, vectors of 2 channels, row major (kCHW2)"},
        {kCHW4, "chw4", DataType::kINT8, DType::I8,
         "INT8, vectors of 4 channels, row major (kCHW4)"},
        {kHWC8, "hwc8", DataType::kHALF, DType::F16,
         "HALF, channels innermost, padded to a multiple of 8 (kHWC8)"},
        {kCHW16, "chw16", DataType::kHALF, DType::F16,
         "HALF, vectors of 16 channels, row major (kCHW16)"},
        {kCHW32, "chw32", DataType::kINT8, DType::I8,
         "INT8, vectors of 32 channels, row major (kCHW32)"},
        {kCHW32, "chw32", DataType::kFLOAT, DType::F32,
         "FLOAT, vectors of 32 channels, row major (kCHW32)"},
        {kDHWC8, "dhwc8", DataType::kHALF, DType::F16,
         "HALF, channels innermost, padded to a multiple of 8 (kDHWC8)"},
        {kCDHW32, "cdhw32", DataType::kHALF, DType::F16,
         "HALF, vectors of 32 channels, row major (kCDHW32)"},
        {kHWC, "hwc", DataType::kFLOAT, DType::F32, "FLOAT, channels innermost (kHWC)"},
        {kHWC, "hwc", DataType::kUINT8, DType::U8, "UINT8, channels innermost (kHWC)"},
        {kHWC16, "hwc16", DataType::kHALF, DType::F16,
         "HALF, channels innermost, padded to a multiple of 16 (kHWC16)"},
        {kDHWC, "dhwc", DataType::kFLOAT, DType::F32, "FLOAT, channels innermost (kDHWC)"},
    };
    return all;
}

nv::TensorFormats mask(std::initializer_list<TensorFormat> formats) {
    nv::TensorFormats bits = 0;
    for (TensorFormat f : formats) {
        bits |= 1U << static_cast<uint32_t>(f);
    }
    return bits;
}

nv::Dims dims_of(const Shape& shape) {
    nv::Dims d{};
    d.nbDims = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), d.d);
    return d;
}

/// The bytes that applications allocate for a tensor: from shape, vectorised dimension and
/// components alone.
size_t bytes_needed(const nv::ICudaEngine& engine, const nv::IExecutionContext& context,
                    const char* name, DType dtype) {
    nv::Dims d = context.getTensorShape(name);
    int64_t count = 1;
    if (int32_t axis = engine.getTensorVectorizedDim(name); axis >= 0) {
        int64_t components = engine.getTensorComponentsPerElement(name);
        EXPECT_EQ(engine.getTensorBytesPerComponent(name), bit_width(dtype) / 8);
        d.d[axis] = (d.d[axis] + components - 1) / components;
        count = components;
    }
    for (int32_t i = 0; i < d.nbDims; ++i) {
        count *= d.d[i];
    }
    return static_cast<size_t>(count * bit_width(dtype) / 8);
}

class IoFormatsApi : public RuntimeTest {
protected:
    IoFormatsApi() {
        builder.reset(nv::createInferBuilder(logger));
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
    }
    /// y = 2x, sums = x summed over its channels in FLOAT; both x and y with these formats.
    void doubling(DataType type, const nv::Dims& shape, int place, nv::TensorFormats formats) {
        x = network->addInput("x", type, shape);
        x->setAllowedFormats(formats);
        nv::ITensor* wide = network->addCast(*x, DataType::kFLOAT)->getOutput(0);
        nv::ITensor* twice =
            network->addElementWise(*wide, *wide, nv::ElementWiseOperation::kSUM)->getOutput(0);
        y = network->addCast(*twice, type)->getOutput(0);
        y->setName("y");
        y->setAllowedFormats(formats);
        network->markOutput(*y);
        nv::ITensor* sums =
            network
                ->addReduce(*wide, nv::ReduceOperation::kSUM,
                            1U << static_cast<uint32_t>(shape.nbDims - place), false)
                ->getOutput(0);
        sums->setName("sums");
        network->markOutput(*sums);
    }
    std::unique_ptr<nv::ICudaEngine> build() {
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        return std::unique_ptr<nv::ICudaEngine>(
            bytes == nullptr ? nullptr
                             : runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    }
    /// "" when it succeeds.
    std::string build_error() {
        EXPECT_EQ(build(), nullptr);
        return logger.take_error();
    }
    void check_facts(const nv::ICudaEngine& engine, const Format& f) {
        const Layout& l = layout(f.layout);
        for (const char* name : {"x", "y"}) {
            EXPECT_EQ(engine.getTensorFormat(name), f.format);
            EXPECT_EQ(engine.getTensorFormat(name, 0), f.format);
            EXPECT_EQ(engine.getTensorFormatDesc(name), f.description);
            EXPECT_EQ(engine.getTensorDataType(name), f.type);
            bool vectors = l.vector > 1;
            EXPECT_EQ(engine.getTensorVectorizedDim(name),
                      vectors ? engine.getTensorShape(name).nbDims - l.channel_axis : -1);
            EXPECT_EQ(engine.getTensorComponentsPerElement(name), vectors ? l.vector : -1);
            EXPECT_EQ(engine.getTensorBytesPerComponent(name),
                      vectors ? bit_width(f.dtype) / 8 : -1);
        }
        EXPECT_EQ(engine.getTensorFormat("sums"), TensorFormat::kLINEAR);
        EXPECT_EQ(engine.getTensorVectorizedDim("sums"), -1);
    }
    /// Runs as an application that fills its buffers itself.
    void check_run(nv::ICudaEngine& engine, nv::IExecutionContext& c, const Format& f,
                   const Shape& shape) {
        const Layout& l = layout(f.layout);
        ASSERT_TRUE(c.setInputShape("x", dims_of(shape))) << logger.take_error();
        EXPECT_EQ(sizes(c.getTensorShape("x")), shape);
        EXPECT_EQ(sizes(c.getTensorShape("y")), shape);
        size_t bytes = bytes_needed(engine, c, "x", f.dtype);
        EXPECT_EQ(bytes, array_bytes(l, f.dtype, shape));
        EXPECT_EQ(c.getMaxOutputSize("y"), static_cast<int64_t>(bytes));
        Tensor in = counting(f.dtype, shape);
        Tensor sums = channel_sums(l, in);
        auto* x_data = static_cast<std::byte*>(memory->allocate(static_cast<int64_t>(bytes)));
        auto* y_data = static_cast<std::byte*>(memory->allocate(static_cast<int64_t>(bytes)));
        void* sums_data = memory->allocate(static_cast<int64_t>(sums.bytes().size()));
        store(l, in, {x_data, bytes}, 0x7F);
        EXPECT_TRUE(c.setTensorAddress("x", x_data) && c.setTensorAddress("y", y_data) &&
                    c.setTensorAddress("sums", sums_data));
        for (int run = 0; run < 3; ++run) { // plain, and where launches are recorded
            ASSERT_TRUE(c.enqueueV3(nullptr)) << logger.take_error();
        }
        synchronize();
        Tensor twice = Tensor::empty(f.dtype, shape);
        for (int64_t i = 0; i < in.count(); ++i) {
            twice.set_f64(i, 2 * in.get_f64(i));
        }
        std::vector<std::byte> expected(bytes);
        store(l, twice, expected, 0);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y_data));
        std::vector<float> got = values_at(sums_data, static_cast<size_t>(sums.count()));
        EXPECT_TRUE(std::equal(got.begin(), got.end(), sums.as<float>().begin()));
        check_strides(c, f, in, x_data);
    }
    /// Checks that each element is at the position given by the strides.
    static void check_strides(const nv::IExecutionContext& c, const Format& f, const Tensor& t,
                              const std::byte* data) {
        const Layout& l = layout(f.layout);
        nv::Dims strides = c.getTensorStrides("x");
        Shape shape = t.shape();
        auto channels = shape.size() - static_cast<size_t>(l.channel_axis);
        auto width = static_cast<size_t>(bit_width(f.dtype) / 8);
        for (int64_t i = 0; i < t.count(); ++i) {
            int64_t element = 0;
            int64_t component = 0;
            int64_t rest = i;
            for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
                int64_t at = rest % shape[d];
                component = d == channels ? at % l.vector : component;
                element += (d == channels ? at / l.vector : at) * strides.d[d];
            }
            const std::byte* there =
                data + static_cast<size_t>(element * l.vector + component) * width;
            ASSERT_EQ(std::memcmp(there, t.bytes().data() + static_cast<size_t>(i) * width, width),
                      0);
        }
    }

    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::INetworkDefinition> network;
    nv::ITensor* x = nullptr;
    nv::ITensor* y = nullptr;
};

Shape sample_shape(const Format& f, int64_t channels) {
    return layout(f.layout).channel_axis == 4 ? Shape{2, channels, 2, 3, 2}
                                              : Shape{2, channels, 3, 4};
}

TEST_P(IoFormatsApi, EachFormat) {
    for (const Format& f : vector_formats()) {
        for (int64_t channels : {3, 32, 37}) {
            SCOPED_TRACE(str(f.description, ' ', channels));
            network.reset(builder->createNetworkV2(0));
            Shape shape = sample_shape(f, channels);
            doubling(f.type, dims_of(shape), layout(f.layout).channel_axis, mask({f.format}));
            auto engine = build();
            ASSERT_NE(engine, nullptr) << logger.take_error();
            EXPECT_EQ(sizes(engine->getTensorShape("x")), shape);
            check_facts(*engine, f);
            check_run(*engine, *context(*engine), f, shape);
        }
    }
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(IoFormatsApi, SizesOfEachRun) {
    for (const Format& f : vector_formats()) {
        SCOPED_TRACE(f.description);
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
        Shape open = sample_shape(f, -1);
        open[0] = open[2] = -1;
        doubling(f.type, dims_of(open), layout(f.layout).channel_axis, mask({f.format}));
        Shape most = sample_shape(f, 40);
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        Shape least = sample_shape(f, 1);
        least[0] = least[2] = 1;
        p->setDimensions("x", nv::OptProfileSelector::kMIN, dims_of(least));
        p->setDimensions("x", nv::OptProfileSelector::kOPT, dims_of(sample_shape(f, 5)));
        p->setDimensions("x", nv::OptProfileSelector::kMAX, dims_of(most));
        config->addOptimizationProfile(p);
        auto engine = build();
        ASSERT_NE(engine, nullptr) << logger.take_error();
        EXPECT_EQ(sizes(engine->getTensorShape("x")), open);
        EXPECT_EQ(sizes(engine->getProfileShape("x", 0, nv::OptProfileSelector::kMAX)), most);
        check_facts(*engine, f);
        auto c = context(*engine);
        EXPECT_EQ(c->getTensorStrides("x").d[0], -1);
        for (int64_t channels : {5, 33, 1}) {
            check_run(*engine, *c, f, sample_shape(f, channels));
        }
        Shape large = sample_shape(f, 41);
        EXPECT_FALSE(c->setInputShape("x", dims_of(large)));
        EXPECT_NE(logger.take_error().find("dimension 1 is 41, allowed 1 to 40"),
                  std::string::npos);
    }
}

TEST_P(IoFormatsApi, OneOfThoseAllowed) {
    struct Case {
        DataType type;
        nv::TensorFormats allowed;
        TensorFormat chosen;
    };
    using enum TensorFormat;
    for (const Case& c : {Case{DataType::kHALF, mask({kLINEAR, kHWC8}), kLINEAR},
                          Case{DataType::kHALF, mask({kCHW2, kHWC8, kCHW32}), kHWC8},
                          Case{DataType::kFLOAT, mask({kCHW2, kHWC8, kCHW32}), kCHW32},
                          Case{DataType::kFLOAT, mask({kDHWC, kHWC}), kHWC},
                          Case{DataType::kINT8, mask({kCHW32, kCHW4, kDLA_LINEAR}), kCHW4},
                          Case{DataType::kHALF, (1U << 13) - 1, kLINEAR}}) {
        network.reset(builder->createNetworkV2(0));
        doubling(c.type, dims({1, 3, 2, 2}), 3, c.allowed);
        EXPECT_EQ(x->getAllowedFormats(), c.allowed);
        auto engine = build();
        ASSERT_NE(engine, nullptr) << logger.take_error();
        EXPECT_EQ(engine->getTensorFormat("x"), c.chosen);
        EXPECT_EQ(engine->getTensorFormat("y"), c.chosen);
    }
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(IoFormatsApi, BuildsThatFail) {
    using enum TensorFormat;
    std::string start = "IBuilder::buildSerializedNetwork: ";
    doubling(DataType::kFLOAT, dims({1, 3, 2, 2}), 3, mask({kCHW2, kCHW4}));
    EXPECT_FALSE(builder->isNetworkSupported(*network, *config));
    logger.take_error();
    EXPECT_EQ(build_error(),
              start + "input 'x' f32[1,3,2,2] has no allowed memory format: "
                      "kCHW2 (chw2) holds f16 or bf16, not f32; kCHW4 (chw4) holds "
                      "f16 or i8, not f32. Formats that fit: kLINEAR, kHWC, kDHWC, kCHW32: "
                      "allow one of these, or change the type of the tensor");
    x->setAllowedFormats(mask({kLINEAR}));
    y->setAllowedFormats(mask({kDLA_HWC4}));
    EXPECT_EQ(build_error(), start + "output 'y' f32[1,3,2,2] has no allowed memory format: "
                                     "kDLA_HWC4 (dla_hwc4) needs DLA, and engines do not run on "
                                     "DLA. Formats that fit: kLINEAR, kHWC, kDHWC, kCHW32: allow "
                                     "one of these, or change the type of the tensor");
    y->setAllowedFormats(0); // reports it now and at build
    std::string text = "tensor 'y' allows formats 0, which are no set of TensorFormat bits: "
                       "expected 1 to 8191, with bit i for format i";
    EXPECT_EQ(logger.take_error(), "ITensor::setAllowedFormats: " + text);
    EXPECT_EQ(build_error(), start + text);
    y->setAllowedFormats(mask({kHWC}));
    EXPECT_NE(build(), nullptr) << logger.take_error();
    config->setFlag(nv::BuilderFlag::kDIRECT_IO);
    EXPECT_EQ(build_error(), start +
                                 "output 'y' would be stored as kHWC, which engines reformat when "
                                 "they run, but kDIRECT_IO (--directIO) forbids that: clear "
                                 "it, or allow kLINEAR (chw)");
    y->setAllowedFormats(mask({kHWC, kLINEAR}));
    EXPECT_NE(build(), nullptr) << logger.take_error();
}

TEST_P(IoFormatsApi, TooFewDimensions) {
    nv::ITensor* in = network->addInput("x", DataType::kFLOAT, dims({4, 4}));
    in->setAllowedFormats(mask({TensorFormat::kHWC}));
    network->markOutput(*network->addIdentity(*in)->getOutput(0));
    EXPECT_EQ(build_error(),
              "IBuilder::buildSerializedNetwork: input 'x' f32[4,4] has no allowed memory format: "
              "kHWC (hwc) needs 3 dimensions or more, not 2. Formats that fit: kLINEAR: allow one "
              "of these, or change the type of the tensor");
}

class Listener : public nv::IDebugListener {
public:
    bool processDebugTensor(const void* data, nv::TensorLocation location, DataType,
                            const nv::Dims& shape, const char* name, cudaStream_t) override {
        int64_t count = 1;
        for (int64_t d : sizes(shape)) {
            count *= d;
        }
        const auto* bytes = static_cast<const std::byte*>(data);
        seen[name] = {location, {bytes, bytes + 2 * count}};
        return true;
    }
    std::map<std::string, std::pair<nv::TensorLocation, std::vector<std::byte>>> seen;
};

// Listeners read tensors in row-major order.
TEST_P(IoFormatsApi, DebugListenersSeeRowMajorTensors) {
    const Format& f = vector_formats()[2];
    doubling(f.type, dims({2, 3, 3, 4}), 3, mask({f.format}));
    EXPECT_TRUE(network->markDebug(*x) && network->markDebug(*y));
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto c = context(*engine);
    Listener listener;
    c->setDebugListener(&listener);
    c->setAllTensorsDebugState(true);
    check_run(*engine, *c, f, {2, 3, 3, 4});
    Tensor in = counting(f.dtype, {2, 3, 3, 4});
    ASSERT_EQ(listener.seen.size(), 2U);
    EXPECT_EQ(listener.seen["x"].first, nv::TensorLocation::kHOST);
    EXPECT_TRUE(
        std::equal(in.bytes().begin(), in.bytes().end(), listener.seen["x"].second.begin()));
}

TEST_P(IoFormatsApi, ARefitAndASecondFileKeepThem) {
    const Format& f = vector_formats()[3];
    const Layout& l = layout(f.layout);
    std::vector<float> three(1, 3);
    x = network->addInput("x", f.type, dims({1, 5, 2, 2}));
    nv::ITensor* wide = network->addCast(*x, DataType::kFLOAT)->getOutput(0);
    nv::ITensor* factor =
        network->addConstant(dims({1, 1, 1, 1}), {DataType::kFLOAT, three.data(), 1})->getOutput(0);
    factor->setName("factor");
    network->getLayer(network->getNbLayers() - 1)->setName("factor");
    nv::ITensor* product =
        network->addElementWise(*wide, *factor, nv::ElementWiseOperation::kPROD)->getOutput(0);
    y = network->addCast(*product, f.type)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    x->setAllowedFormats(mask({f.format}));
    y->setAllowedFormats(mask({f.format}));
    config->setFlag(nv::BuilderFlag::kREFIT);
    auto first = build();
    ASSERT_NE(first, nullptr) << logger.take_error();
    std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*first, logger));
    float two = 2;
    EXPECT_TRUE(
        refitter->setWeights("factor", nv::WeightsRole::kCONSTANT, {DataType::kFLOAT, &two, 1}));
    EXPECT_TRUE(refitter->refitCudaEngine()) << logger.take_error();
    std::unique_ptr<nv::IHostMemory> bytes(first->serialize());
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_EQ(engine->getTensorFormat("x"), f.format);
    auto c = context(*engine);
    Shape shape{1, 5, 2, 2};
    size_t size = array_bytes(l, f.dtype, shape);
    auto* in = static_cast<std::byte*>(memory->allocate(static_cast<int64_t>(size)));
    auto* out = static_cast<std::byte*>(memory->allocate(static_cast<int64_t>(size)));
    Tensor t = counting(f.dtype, shape);
    store(l, t, {in, size}, 0x7F);
    c->setTensorAddress("x", in);
    c->setTensorAddress("y", out);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    synchronize();
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, 2 * t.get_f64(i));
    }
    std::vector<std::byte> expected(size);
    store(l, t, expected, 0);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out));
}

INSTANTIATE_TEST_SUITE_P(Devices, IoFormatsApi, testing::Bool(),
                         [](const auto& p) { return p.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
