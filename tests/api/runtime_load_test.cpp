// SPDX-License-Identifier: Apache-2.0
// Loading: releasable bytes, damaged ones, readers, validity, deferred weights, and engines written
// again.
#include "NvInferPlugin.h"
#include "api/runtime_fixture.h"
#include "base/allocation_count.h"
#include "base/shared_library.h"

namespace ingot::test {
namespace {

using nvinfer1::EngineInvalidityDiagnostics;
using nvinfer1::EngineValidity;

class RuntimeLoad : public RuntimeTest {
protected:
    /// y = x * w + 1 with a weight.
    static std::shared_ptr<const Engine> weighted(float w) {
        Graph g;
        Value x = g.add_input("x", parse_type("f32[3]"));
        std::vector<float> weights = {w, w + 1, w + 2};
        weights.resize(100); // fewer would be part of the graph
        Value all =
            ops::constant(g, Tensor::of<float>(DType::F32, {100}, std::span<const float>(weights)));
        Value c = ops::slice(g, all, 0, 0, 3);
        g.add_output("y", ops::add(g, ops::mul(g, x, c), 1.0));
        return Engine::create(std::move(g), {}, {});
    }
    std::vector<float> run(nvinfer1::ICudaEngine& engine) {
        auto c = context(engine);
        void* y = memory->allocate(12);
        c->setTensorAddress("x", memory->floats({1, 2, 3}));
        c->setTensorAddress("y", y);
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        return values_at(y, 3);
    }
    EngineValidity validity(const AlignedBytes& bytes, size_t size, uint64_t& why) const {
        return runtime->getEngineValidity(bytes.data(), static_cast<int64_t>(size), &why);
    }
};

TEST_P(RuntimeLoad, BytesAreNotNeededAfterwards) {
    AlignedBytes bytes = engine_bytes(*weighted(2));
    auto engine = load(bytes);
    ASSERT_NE(engine, nullptr) << logger.take_error();
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    EXPECT_EQ(run(*engine), (std::vector<float>{3, 7, 13}));
    EXPECT_EQ(engine->getEngineStat(nvinfer1::EngineStat::kTOTAL_WEIGHTS_SIZE),
              static_cast<int64_t>(weighted(2)->weight_bytes()));
}

TEST_P(RuntimeLoad, AnEngineCanBeWrittenAgain) {
    auto engine = load(*weighted(2));
    std::unique_ptr<nvinfer1::IHostMemory> bytes(engine->serialize());
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes->data()) % 64, 0U);
    EXPECT_EQ(bytes->type(), nvinfer1::DataType::kINT8);
    AlignedBytes expected = engine_bytes(*weighted(2));
    ASSERT_EQ(bytes->size(), expected.size());
    EXPECT_EQ(std::memcmp(bytes->data(), expected.data(), expected.size()), 0);
    engine.reset();
    engine.reset(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    EXPECT_EQ(run(*engine), (std::vector<float>{3, 7, 13}));
    std::unique_ptr<nvinfer1::ISerializationConfig> config(engine->createSerializationConfig());
    using nvinfer1::SerializationFlag;
    EXPECT_EQ(config->getFlags(), 0U);
    EXPECT_TRUE(config->setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
    EXPECT_TRUE(config->getFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
    std::unique_ptr<nvinfer1::IHostMemory> again(engine->serializeWithConfig(*config));
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(again->size(), bytes->size());
}

TEST_P(RuntimeLoad, DamagedBytesAreRefused) {
    AlignedBytes whole = engine_bytes(*weighted(2));
    for (size_t at = 0; at < whole.size(); ++at) { // each byte of each section, gaps too
        AlignedBytes bytes = whole;
        bytes[at] ^= static_cast<std::byte>(1U << (at % 8));
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        ASSERT_EQ(engine, nullptr) << "byte " << at;
        std::string error = logger.take_error();
        ASSERT_EQ(error.find("IRuntime::deserializeCudaEngine: "), 0U) << error;
    }
    EXPECT_NE(load(whole), nullptr);
    for (size_t size : {size_t{0}, size_t{10}, size_t{64}, whole.size() - 1}) {
        EXPECT_EQ(runtime->deserializeCudaEngine(whole.data(), size), nullptr);
        EXPECT_NE(logger.take_error(), "");
    }
}

class Reader : public nvinfer1::IStreamReaderV2 {
public:
    explicit Reader(const AlignedBytes& bytes, int64_t most) : bytes_(bytes), most_(most) {}
    int64_t read(void* destination, int64_t nbBytes, cudaStream_t) noexcept override {
        if (fails) {
            return -1;
        }
        int64_t n = std::min({nbBytes, most_, static_cast<int64_t>(bytes_.size()) - at_});
        std::memcpy(destination, bytes_.data() + at_, static_cast<size_t>(n));
        at_ += n;
        return n;
    }
    bool seek(int64_t, nvinfer1::SeekPosition) noexcept override { return false; }
    bool fails = false;

private:
    const AlignedBytes& bytes_;
    int64_t most_;
    int64_t at_ = 0;
};

class OldReader : public nvinfer1::IStreamReader {
public:
    explicit OldReader(Reader& reader) : reader_(reader) {}
    int64_t read(void* destination, int64_t nbBytes) override {
        return reader_.read(destination, nbBytes, nullptr);
    }

private:
    Reader& reader_;
};

TEST_P(RuntimeLoad, Readers) {
    AlignedBytes bytes = engine_bytes(*weighted(4));
    for (int64_t most : {int64_t{7}, int64_t{1} << 30}) {
        Reader reader(bytes, most);
        std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(reader));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        EXPECT_EQ(run(*engine), (std::vector<float>{5, 11, 19}));
        Reader other(bytes, most);
        OldReader old(other);
        engine.reset(runtime->deserializeCudaEngine(old));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        EXPECT_EQ(run(*engine), (std::vector<float>{5, 11, 19}));
    }
    Reader broken(bytes, 100);
    broken.fails = true;
    EXPECT_EQ(runtime->deserializeCudaEngine(broken), nullptr);
    EXPECT_EQ(logger.take_error(),
              "IRuntime::deserializeCudaEngine: the reader gave -1 for 64 bytes after 0");
    bytes.resize(bytes.size() - 5);
    Reader cut(bytes, 100);
    EXPECT_EQ(runtime->deserializeCudaEngine(cut), nullptr);
    EXPECT_NE(logger.take_error().find("it is truncated, copy it again"), std::string::npos);
}

TEST_P(RuntimeLoad, ValidityFromTheHeader) {
    AlignedBytes bytes = engine_bytes(*weighted(2));
    auto size = static_cast<size_t>(runtime->getEngineHeaderSize());
    EXPECT_EQ(size, 64U);
    uint64_t why = 99;
    EXPECT_EQ(validity(bytes, size, why), EngineValidity::kVALID);
    EXPECT_EQ(why, 0U);
    EXPECT_EQ(runtime->getEngineValidity(bytes.data(), 64, nullptr), EngineValidity::kVALID);
    EXPECT_EQ(validity(bytes, size - 1, why), EngineValidity::kINVALID);
    EXPECT_EQ(why, static_cast<uint64_t>(EngineInvalidityDiagnostics::kMALFORMED_ENGINE));
    bytes[8] = std::byte{200}; // the format
    EXPECT_EQ(validity(bytes, size, why), EngineValidity::kINVALID);
    EXPECT_EQ(why, static_cast<uint64_t>(EngineInvalidityDiagnostics::kVERSION_MISMATCH));
    bytes[0] = std::byte{0};
    EXPECT_EQ(validity(bytes, size, why), EngineValidity::kINVALID);
    EXPECT_EQ(why, static_cast<uint64_t>(EngineInvalidityDiagnostics::kMALFORMED_ENGINE));
    EXPECT_EQ(runtime->getEngineValidity(nullptr, 64, &why), EngineValidity::kINVALID);
}

TEST_P(RuntimeLoad, WeightsThatComeLater) {
    AlignedBytes bytes = engine_bytes(*weighted(2));
    runtime->setDeferredWeightsLoading(true);
    EXPECT_TRUE(runtime->getDeferredWeightsLoading());
    auto engine = load(bytes);
    EXPECT_FALSE(engine->areWeightsLoaded());
    auto c = context(*engine);
    ASSERT_NE(c, nullptr);
    void* y = memory->allocate(12);
    c->setTensorAddress("x", memory->floats({1, 2, 3}));
    c->setTensorAddress("y", y);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3: the weights are not loaded: call "
                                   "ICudaEngine::loadWeights() first");
    EXPECT_EQ(engine->serialize(), nullptr);
    EXPECT_NE(logger.take_error(), "");
    AlignedBytes others = engine_bytes(*weighted(3));
    EXPECT_FALSE(engine->loadWeights(others.data(), static_cast<int64_t>(others.size())));
    EXPECT_EQ(logger.take_error(),
              "ICudaEngine::loadWeights: these weights belong to another engine");
    Reader reader(bytes, 1000);
    EXPECT_TRUE(engine->loadWeightsAsync(reader, nullptr)) << logger.take_error();
    EXPECT_TRUE(engine->areWeightsLoaded());
    EXPECT_FALSE(engine->loadWeights(bytes.data(), static_cast<int64_t>(bytes.size())));
    EXPECT_EQ(logger.take_error(), "ICudaEngine::loadWeights: the weights are loaded already");
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(values_at(y, 3), (std::vector<float>{3, 7, 13}));
}

/// Loading an engine takes the memory of its bytes, with no more at its peak.
TEST_P(RuntimeLoad, BytesAreHeldOnce) {
    if (allocation_count() == 0) {
        GTEST_SKIP() << "operator new cannot be watched under this sanitizer";
    }
    constexpr int64_t megabyte = 1 << 20;
    AlignedBytes bytes;
    {
        Graph g;
        Value x = g.add_input("x", parse_type("f32[3000,1000]"));
        Tensor w = Tensor::empty(DType::F32, {3000, 1000});
        for (int64_t i = 0; i < w.count(); ++i) {
            w.set_f64(i, static_cast<double>(i % 1000));
        }
        g.add_output("y", ops::mul(g, x, ops::constant(g, w)));
        bytes = engine_bytes(*Engine::create(std::move(g), {}, {}));
    }
    auto size = static_cast<int64_t>(bytes.size());
    ASSERT_GT(size, 11 * megabyte);
    auto expect_held_once = [&](const char* what, const std::function<void()>& f) {
        int64_t before = live_bytes();
        forget_most_bytes();
        f();
        EXPECT_LT(most_live_bytes() - before, size + 2 * megabyte) << what;
    };
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    expect_held_once("a blob", [&] { engine = load(bytes); });
    engine.reset();
    for (int64_t most : {int64_t{100000}, int64_t{1} << 30}) {
        Reader reader(bytes, most);
        expect_held_once("a reader", [&] { engine.reset(runtime->deserializeCudaEngine(reader)); });
        ASSERT_NE(engine, nullptr) << logger.take_error();
        engine.reset();
    }
    runtime->setDeferredWeightsLoading(true);
    Reader first(bytes, int64_t{1} << 30);
    Reader second(bytes, 300000);
    expect_held_once("deferred", [&] {
        engine.reset(runtime->deserializeCudaEngine(first));
        EXPECT_TRUE(engine->loadWeightsAsync(second, nullptr)) << logger.take_error();
    });
    engine.reset();
    engine = load(bytes);
    expect_held_once("a blob again", [&] {
        EXPECT_TRUE(engine->loadWeights(bytes.data(), size)) << logger.take_error();
    });
    engine.reset();
    // In the application's memory, where the CPU reads weights, from the start.
    HostVisible allocator;
    runtime->setGpuAllocator(&allocator);
    int64_t before = live_bytes();
    forget_most_bytes();
    Reader third(bytes, int64_t{1} << 30);
    engine.reset(runtime->deserializeCudaEngine(third));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_LT(most_live_bytes() - before, (GetParam() ? size : 0) + 2 * megabyte);
    engine.reset();
    runtime->setGpuAllocator(nullptr);
}

/// For every way of loading; only an explicit setting switches it off.
TEST_P(RuntimeLoad, DamagedWeightsAreRefused) {
    AlignedBytes bytes = engine_bytes(*weighted(2));
    bytes[4096 + 2] ^= std::byte{0x40};
    const std::string expected =
        "IRuntime::deserializeCudaEngine: the engine: section weights: chunk 0 of 1, bytes 4096 to "
        "4495, does not match its hash: the file is damaged, copy it again or rebuild the engine";
    auto ways = [&](const std::function<void(nvinfer1::ICudaEngine*)>& expect) {
        expect(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        Reader reader(bytes, 100);
        expect(runtime->deserializeCudaEngine(reader));
        Reader other(bytes, 100);
        OldReader old(other);
        expect(runtime->deserializeCudaEngine(old));
    };
    for (bool deferred : {false, true}) {
        runtime->setDeferredWeightsLoading(deferred);
        ways([&](nvinfer1::ICudaEngine* engine) {
            EXPECT_EQ(engine, nullptr);
            EXPECT_EQ(logger.take_error(), expected);
            delete engine;
        });
    }
    runtime->setDeferredWeightsLoading(false);
    EXPECT_TRUE(setVerifyWeights(*runtime, false));
    ways([&](nvinfer1::ICudaEngine* made) {
        std::unique_ptr<nvinfer1::ICudaEngine> engine(made);
        ASSERT_NE(engine, nullptr) << logger.take_error();
        EXPECT_NE(run(*engine), (std::vector<float>{3, 7, 13}));
    });
    EXPECT_TRUE(setVerifyWeights(*runtime, true));
    EXPECT_EQ(load(bytes), nullptr);
    EXPECT_EQ(logger.take_error(), expected);
    EXPECT_FALSE(ingotSetVerifyWeights(nullptr, true));
}

/// The copy is compared while it is made: a chunk that came first, last, or between.
TEST_P(RuntimeLoad, DamageInAnyChunkIsRefused) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[1]"));
    Tensor w = Tensor::empty(DType::F32, {9'000'000});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, static_cast<double>(i % 1000));
    }
    Value sum = ops::reduce(g, "max", ops::constant(g, w), {0});
    g.add_output("y", ops::add(g, x, sum));
    AlignedBytes bytes = engine_bytes(*Engine::create(std::move(g), {}, {}));
    EXPECT_NE(load(bytes), nullptr) << logger.take_error();
    for (size_t chunk : {0, 1, 2}) {
        bytes[4096 + chunk * (16 << 20) + 12345] ^= std::byte{1};
        EXPECT_EQ(load(bytes), nullptr);
        EXPECT_NE(logger.take_error().find(str("section weights: chunk ", chunk, " of 3")),
                  std::string::npos);
        bytes[4096 + chunk * (16 << 20) + 12345] ^= std::byte{1};
    }
    EXPECT_NE(load(bytes), nullptr) << logger.take_error();
}

TEST_P(RuntimeLoad, AHeaderThatClaimsTooMuch) {
    AlignedBytes bytes = engine_bytes(*weighted(2));
    for (uint64_t claim : {uint64_t{1} << 40U, uint64_t{1} << 62U, uint64_t{10}}) {
        AlignedBytes other = bytes;
        std::memcpy(other.data() + 40, &claim, sizeof claim);
        Reader reader(other, 1000);
        EXPECT_EQ(runtime->deserializeCudaEngine(reader), nullptr);
        EXPECT_NE(logger.take_error(), "");
    }
}

TEST_P(RuntimeLoad, VersionsAndTheFirstLogger) {
    EXPECT_EQ(getInferLibVersion(), NV_TENSORRT_VERSION);
    EXPECT_EQ(getInferLibMajorVersion(), NV_TENSORRT_MAJOR);
    EXPECT_EQ(getInferLibMinorVersion(), NV_TENSORRT_MINOR);
    EXPECT_EQ(getInferLibPatchVersion(), NV_TENSORRT_PATCH);
    EXPECT_EQ(getInferLibBuildVersion(), NV_TENSORRT_BUILD);
    EXPECT_STREQ(ingot::version(), "0.1.0");
    EXPECT_NE(::getLogger(), nullptr);
    EXPECT_EQ(runtime->getLogger(), &logger);
    EXPECT_EQ(createInferRuntime_INTERNAL(&logger, 8006), nullptr);
    EXPECT_EQ(logger.take_error(), "createInferRuntime: the program was compiled with headers of "
                                   "version 8006, this library serves 10600 and 110100; compile "
                                   "it with the headers of this Ingot");
    std::unique_ptr<nvinfer1::IRuntime> enterprise(
        static_cast<nvinfer1::IRuntime*>(createInferRuntime_INTERNAL(&logger, 110100)));
    EXPECT_NE(enterprise, nullptr);
}

TEST(LibraryFolder, CanBeChosen) {
    std::string was = own_folder();
    EXPECT_NE(was, "");
    setInternalLibraryPath("/some/folder");
    EXPECT_EQ(own_folder(), "/some/folder");
    setInternalLibraryPath(nullptr);
    EXPECT_EQ(own_folder(), was);
    EXPECT_TRUE(initLibNvInferPlugins(nullptr, ""));
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeLoad, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
