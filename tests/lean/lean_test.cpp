// SPDX-License-Identifier: Apache-2.0
// libingot_lean.so and libingot_dispatch.so, opened as a separate program would: they run engines
// that libingot.so built; engines of other releases go to those releases' libraries.
#include "NvInfer.h"
#include "ingot.h"
#include "trust_keys.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ingot::test {
namespace {

namespace fs = std::filesystem;

class Logger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char* text) noexcept override {
        if (severity <= Severity::kERROR) {
            errors += errors.empty() ? "" : "\n";
            errors += text;
        }
    }
    std::string take() { return std::exchange(errors, ""); }
    std::string errors;
};

Logger& logger() {
    static Logger all;
    return all;
}

using Bytes = std::vector<char>;

/// y = relu(x + x), of f32[4].
Bytes build_engine() {
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger()));
    std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    nvinfer1::Dims dims{1, {4}};
    nvinfer1::ITensor* x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims);
    auto* sum = network->addElementWise(*x, *x, nvinfer1::ElementWiseOperation::kSUM);
    auto* relu = network->addActivation(*sum->getOutput(0), nvinfer1::ActivationType::kRELU);
    relu->getOutput(0)->setName("y");
    network->markOutput(*relu->getOutput(0));
    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(nvinfer1::BuilderFlag::kVERSION_COMPATIBLE);
    config->setFlag(nvinfer1::BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
    std::unique_ptr<nvinfer1::IHostMemory> memory(
        builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(memory, nullptr) << logger().take();
    const char* data = static_cast<const char*>(memory->data());
    return {data, data + memory->size()};
}

/// The engine with the version and format of that major release.
Bytes of_release(Bytes engine, uint8_t major) {
    engine[8] = 99;                        // the format
    engine[14] = static_cast<char>(major); // of the producer, 0x00MMmmpp at byte 12
    return engine;
}

/// A library opened separately from the test program's.
struct Library {
    explicit Library(const std::string& path)
        : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(handle, nullptr) << dlerror();
    }
    template <class F>
    F* function(const char* name) const {
        return reinterpret_cast<F*>(dlsym(handle, name));
    }
    std::unique_ptr<nvinfer1::IRuntime> runtime() const {
        auto create = function<void*(void*, int32_t)>("createInferRuntime_INTERNAL");
        return std::unique_ptr<nvinfer1::IRuntime>(
            static_cast<nvinfer1::IRuntime*>(create(&logger(), NV_TENSORRT_VERSION)));
    }
    void* handle;
};

void use_cpu(const Library& library, nvinfer1::IRuntime& runtime) {
    auto set =
        library.function<bool(nvinfer1::IRuntime*, int32_t, int32_t)>("ingotSetRuntimeDevice");
    ASSERT_TRUE(set(&runtime, static_cast<int32_t>(Device::kCPU), 0)) << logger().take();
}

void expect_runs(nvinfer1::ICudaEngine* made) {
    std::unique_ptr<nvinfer1::ICudaEngine> engine(made);
    ASSERT_NE(engine, nullptr) << logger().take();
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
    ASSERT_NE(context, nullptr) << logger().take();
    alignas(256) float x[4] = {1, -2, 3, -4};
    alignas(256) float y[4] = {};
    void* bindings[] = {x, y};
    ASSERT_TRUE(context->executeV2(bindings)) << logger().take();
    EXPECT_EQ((std::vector<float>(y, y + 4)), (std::vector<float>{2, 0, 6, 0}));
}

/// Configurations of the engine have priorities, by functions of that library.
void expect_priorities(const Library& library, nvinfer1::ICudaEngine& engine) {
    auto set = library.function<bool(nvinfer1::IRuntimeConfig*, int32_t)>("ingotSetPriority");
    auto get = library.function<int32_t(const nvinfer1::IRuntimeConfig*)>("ingotGetPriority");
    ASSERT_TRUE(set != nullptr && get != nullptr);
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine.createRuntimeConfig());
    EXPECT_EQ(get(config.get()), static_cast<int32_t>(Priority::kNORMAL));
    EXPECT_TRUE(set(config.get(), static_cast<int32_t>(Priority::kLOW)));
    EXPECT_EQ(get(config.get()), static_cast<int32_t>(Priority::kLOW));
    EXPECT_FALSE(set(config.get(), 3));
    EXPECT_EQ(logger().take(), "ingot::setPriority: the priority is 3, expected 0 (kLOW), 1 "
                               "(kNORMAL) or 2 (kHIGH)");
    EXPECT_EQ(get(config.get()), static_cast<int32_t>(Priority::kLOW));
    EXPECT_FALSE(set(nullptr, 1));
    EXPECT_EQ(get(nullptr), static_cast<int32_t>(Priority::kNORMAL));
}

class Reader : public nvinfer1::IStreamReaderV2 {
public:
    explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
    int64_t read(void* to, int64_t n, cudaStream_t) noexcept override {
        n = std::min(n, static_cast<int64_t>(bytes_.size() - at_));
        n = std::min<int64_t>(n, 50); // less than the header
        std::memcpy(to, bytes_.data() + at_, static_cast<size_t>(n));
        at_ += static_cast<size_t>(n);
        return n;
    }
    bool seek(int64_t, nvinfer1::SeekPosition) noexcept override { return false; }

private:
    const Bytes& bytes_;
    size_t at_ = 0;
};

const Bytes& engine() {
    static const Bytes bytes = build_engine();
    return bytes;
}

TEST(Lean, RunsEnginesAndHasNoBuilder) {
    Library lean(LEAN_LIBRARY);
    EXPECT_EQ(dlsym(lean.handle, "createInferBuilder_INTERNAL"), nullptr);
    EXPECT_EQ(dlsym(lean.handle, "createNvOnnxParser_INTERNAL"), nullptr);
    EXPECT_LT(fs::file_size(LEAN_LIBRARY), fs::file_size(FULL_LIBRARY));
    auto runtime = lean.runtime();
    ASSERT_NE(runtime, nullptr);
    use_cpu(lean, *runtime);
    nvinfer1::ICudaEngine* made = runtime->deserializeCudaEngine(engine().data(), engine().size());
    EXPECT_EQ(lean.function<int32_t(const nvinfer1::ICudaEngine*)>("ingotGetDevice")(made),
              static_cast<int32_t>(Device::kCPU));
    expect_priorities(lean, *made);
    expect_runs(made);
}

/// y = x * w, w = (1, 2, 3, ...).
Bytes build_product(const std::vector<nvinfer1::BuilderFlag>& flags, int64_t n = 4) {
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger()));
    std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    nvinfer1::Dims dims{1, {n}};
    nvinfer1::ITensor* x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims);
    std::vector<float> w(static_cast<size_t>(n));
    std::iota(w.begin(), w.end(), 1.0F);
    auto* constant = network->addConstant(dims, {nvinfer1::DataType::kFLOAT, w.data(), n});
    EXPECT_TRUE(network->setWeightsName({nvinfer1::DataType::kFLOAT, w.data(), n}, "w"));
    auto* product =
        network->addElementWise(*x, *constant->getOutput(0), nvinfer1::ElementWiseOperation::kPROD);
    network->markOutput(*product->getOutput(0));
    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    for (nvinfer1::BuilderFlag flag : flags) {
        config->setFlag(flag);
    }
    std::unique_ptr<nvinfer1::IHostMemory> memory(
        builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(memory, nullptr) << logger().take();
    const char* data = static_cast<const char*>(memory->data());
    return {data, data + memory->size()};
}

Bytes build_weighted() {
    return build_product({}, 100); // few are part of the graph
}

/// w is missing: a refit brings it.
Bytes build_refittable() {
    return build_product({nvinfer1::BuilderFlag::kSTRIP_PLAN, nvinfer1::BuilderFlag::kREFIT});
}

/// Engines arrive without weights and get them where only that library is.
void expect_refits(const Library& library) {
    auto runtime = library.runtime();
    ASSERT_NE(runtime, nullptr);
    use_cpu(library, *runtime);
    Bytes bytes = build_refittable();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger().take();
    EXPECT_EQ(engine->createExecutionContext(), nullptr);
    EXPECT_NE(logger().take().find("refit it first"), std::string::npos);
    auto create = library.function<void*(void*, void*, int32_t)>("createInferRefitter_INTERNAL");
    ASSERT_NE(create, nullptr);
    std::unique_ptr<nvinfer1::IRefitter> refitter(
        static_cast<nvinfer1::IRefitter*>(create(engine.get(), &logger(), NV_TENSORRT_VERSION)));
    ASSERT_NE(refitter, nullptr) << logger().take();
    EXPECT_TRUE(refitter->setMaxThreads(3));
    const float w[4] = {5, 6, 7, 8};
    EXPECT_TRUE(refitter->setNamedWeights("w", {nvinfer1::DataType::kFLOAT, w, 4}))
        << logger().take();
    EXPECT_TRUE(refitter->refitCudaEngine()) << logger().take();
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
    ASSERT_NE(context, nullptr) << logger().take();
    alignas(256) float x[4] = {1, -2, 3, -4};
    alignas(256) float y[4] = {};
    void* bindings[] = {x, y};
    ASSERT_TRUE(context->executeV2(bindings)) << logger().take();
    EXPECT_EQ((std::vector<float>(y, y + 4)), (std::vector<float>{5, -12, 21, -32}));
    // The full library's refitter takes none of another library's engines.
    EXPECT_EQ(nvinfer1::createInferRefitter(*engine, logger()), nullptr);
    EXPECT_EQ(logger().take(), "createInferRefitter: the engine was made by another library: use "
                               "createInferRefitter() of that one");
}

/// The weights of build_weighted() with a flipped bit.
void expect_refuses_damage(const Library& library) {
    auto runtime = library.runtime();
    ASSERT_NE(runtime, nullptr);
    use_cpu(library, *runtime);
    Bytes bytes = build_weighted();
    auto load = [&] {
        return std::unique_ptr<nvinfer1::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    };
    EXPECT_NE(load(), nullptr) << logger().take();
    bytes[4096 + 3] = static_cast<char>(bytes[4096 + 3] ^ 0x40); // weights are the first section
    EXPECT_EQ(load(), nullptr);
    EXPECT_NE(logger().take().find("section weights: chunk 0 of 1, bytes 4096 to 4495, does not "
                                   "match its hash"),
              std::string::npos);
    auto set = library.function<bool(nvinfer1::IRuntime*, bool)>("ingotSetVerifyWeights");
    ASSERT_NE(set, nullptr);
    EXPECT_TRUE(set(runtime.get(), false));
    EXPECT_NE(load(), nullptr) << logger().take();
    EXPECT_TRUE(set(runtime.get(), true));
    EXPECT_EQ(load(), nullptr);
    logger().take();
    auto fresh = library.runtime(); // set before it has loaded anything
    use_cpu(library, *fresh);
    EXPECT_TRUE(set(fresh.get(), false));
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        fresh->deserializeCudaEngine(bytes.data(), bytes.size()));
    EXPECT_NE(engine, nullptr) << logger().take();
}

/// Trusted keys, set before and after the library has loaded an engine.
void expect_trusts_keys(const Library& library) {
    auto set_keys = library.function<bool(nvinfer1::IRuntime*, const char*)>("ingotSetTrustedKeys");
    auto set_only = library.function<bool(nvinfer1::IRuntime*, bool)>("ingotSetTrustedOnly");
    ASSERT_TRUE(set_keys != nullptr && set_only != nullptr);
    Bytes plain = build_weighted();
    std::unique_ptr<nvinfer1::IHostMemory> made(ingot::signEngine(
        logger(), plain.data(), plain.size(), ingot::test::private_key_1.c_str()));
    ASSERT_NE(made, nullptr) << logger().take();
    const char* data = static_cast<const char*>(made->data());
    const Bytes signed_bytes(data, data + made->size());
    auto loads = [](nvinfer1::IRuntime& runtime, const Bytes& bytes) {
        std::unique_ptr<nvinfer1::ICudaEngine> e(
            runtime.deserializeCudaEngine(bytes.data(), bytes.size()));
        return e != nullptr;
    };
    for (bool loads_before : {false, true}) {
        auto runtime = library.runtime();
        use_cpu(library, *runtime);
        EXPECT_TRUE(!loads_before || loads(*runtime, plain));
        EXPECT_TRUE(set_only(runtime.get(), true));
        EXPECT_TRUE(set_keys(runtime.get(), ingot::test::public_key_1.c_str()));
        EXPECT_FALSE(set_keys(runtime.get(), "nonsense"));
        logger().take();
        EXPECT_TRUE(loads(*runtime, signed_bytes)) << logger().take();
        EXPECT_FALSE(loads(*runtime, plain));
        EXPECT_NE(logger().take().find("only engines signed by a trusted key are allowed"),
                  std::string::npos);
        EXPECT_TRUE(set_keys(runtime.get(), ingot::test::public_key_2.c_str()));
        EXPECT_FALSE(loads(*runtime, signed_bytes));
        logger().take();
    }
    EXPECT_FALSE(set_only(nullptr, true));
    EXPECT_FALSE(set_keys(nullptr, nullptr));
}

TEST(Lean, TrustsKeys) {
    expect_trusts_keys(Library(LEAN_LIBRARY));
}

TEST(Dispatch, TrustsKeys) {
    expect_trusts_keys(Library(DISPATCH_LIBRARY));
}

TEST(Lean, RefusesDamagedWeights) {
    expect_refuses_damage(Library(LEAN_LIBRARY));
}

TEST(Dispatch, RefusesDamagedWeights) {
    expect_refuses_damage(Library(DISPATCH_LIBRARY));
}

TEST(Lean, RefitsEngines) {
    expect_refits(Library(LEAN_LIBRARY));
    EXPECT_LT(fs::file_size(LEAN_LIBRARY), 20U << 20);
}

TEST(Dispatch, RefitsEnginesOfItsLeanLibraries) {
    Library dispatch(DISPATCH_LIBRARY);
    expect_refits(dispatch);
    auto create = dispatch.function<void*(void*, void*, int32_t)>("createInferRefitter_INTERNAL");
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger()));
    Bytes bytes = build_refittable();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    EXPECT_EQ(create(engine.get(), &logger(), NV_TENSORRT_VERSION), nullptr);
    EXPECT_EQ(logger().take(),
              "createInferRefitter: the engine was made by no lean library that this one has "
              "opened: use createInferRefitter() of the library that made it");
}

TEST(Lean, TheFullRuntimeLoadsIt) {
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger()));
    std::unique_ptr<nvinfer1::IRuntime> lean(runtime->loadRuntime(LEAN_LIBRARY));
    ASSERT_NE(lean, nullptr) << logger().take();
    use_cpu(Library(LEAN_LIBRARY), *lean);
    runtime.reset(); // it needs nothing of it
    // Its registry is its own, not the program's.
    EXPECT_NE(&lean->getPluginRegistry(), ::getPluginRegistry());
    expect_runs(lean->deserializeCudaEngine(engine().data(), engine().size()));
    EXPECT_EQ(logger().take(), "");
}

TEST(Dispatch, RunsEnginesOfThisRelease) {
    Library dispatch(DISPATCH_LIBRARY);
    EXPECT_LT(fs::file_size(DISPATCH_LIBRARY), 2U << 20);
    auto runtime = dispatch.runtime();
    ASSERT_NE(runtime, nullptr);
    use_cpu(dispatch, *runtime);
    nvinfer1::ICudaEngine* made = runtime->deserializeCudaEngine(engine().data(), engine().size());
    EXPECT_EQ(
        dispatch.function<const char*(const nvinfer1::ICudaEngine*)>("ingotGetDeviceError")(made),
        nullptr);
    EXPECT_EQ(dispatch.function<int32_t(const nvinfer1::ICudaEngine*)>("ingotGetDevice")(made),
              static_cast<int32_t>(Device::kCPU));
    expect_priorities(dispatch, *made);
    expect_runs(made);
    Reader reader(engine());
    expect_runs(runtime->deserializeCudaEngine(reader));
    uint64_t why = 99;
    EXPECT_EQ(runtime->getEngineValidity(engine().data(), runtime->getEngineHeaderSize(), &why),
              nvinfer1::EngineValidity::kVALID);
    EXPECT_EQ(why, 0U);
    EXPECT_EQ(logger().take(), "");
}

/// A folder with libingot_dispatch.so and the other release's lean library.
class Installed {
public:
    explicit Installed(const char* name) : folder(fs::path(OTHER_FOLDER) / name) {
        fs::remove_all(folder);
        fs::create_directories(folder);
        fs::copy_file(DISPATCH_LIBRARY, folder / "libingot_dispatch.so");
    }
    ~Installed() { fs::remove_all(folder); }
    Installed(const Installed&) = delete;
    Installed& operator=(const Installed&) = delete;
    std::string dispatch() const { return (folder / "libingot_dispatch.so").string(); }
    fs::path folder;
};

TEST(Dispatch, EnginesOfOtherReleasesGoToTheirLibraries) {
    Installed place("both");
    fs::copy_file(OTHER_LEAN, place.folder / "libingot_lean.so.7");
    fs::copy_file(LEAN_LIBRARY, place.folder / "libingot_lean.so");
    Library dispatch(place.dispatch());
    auto runtime = dispatch.runtime();
    use_cpu(dispatch, *runtime);
    EXPECT_TRUE(runtime->setMaxThreads(3));
    Bytes other = of_release(engine(), 7);
    EXPECT_EQ(runtime->deserializeCudaEngine(other.data(), other.size()), nullptr);
    std::string size = std::to_string(other.size());
    EXPECT_EQ(logger().take(), "other runtime, 3 threads: an engine of " + size + " bytes");
    Reader reader(other);
    EXPECT_EQ(runtime->deserializeCudaEngine(reader), nullptr);
    EXPECT_EQ(logger().take(), "other runtime, 3 threads: a stream of " + size + " bytes");
    EXPECT_TRUE(runtime->setMaxThreads(5)); // of runtimes that are there already, too
    EXPECT_EQ(runtime->deserializeCudaEngine(other.data(), other.size()), nullptr);
    EXPECT_EQ(logger().take(), "other runtime, 5 threads: an engine of " + size + " bytes");
    expect_runs(runtime->deserializeCudaEngine(engine().data(), engine().size()));
}

TEST(Dispatch, WithoutALibraryItSaysWhatToDo) {
    Installed place("none");
    Library dispatch(place.dispatch());
    auto runtime = dispatch.runtime();
    Bytes other = of_release(engine(), 9);
    EXPECT_EQ(runtime->deserializeCudaEngine(other.data(), other.size()), nullptr);
    std::string error = logger().take();
    EXPECT_NE(error.find("IRuntime::deserializeCudaEngine: there is no lean runtime for engines of "
                         "Ingot 9: none of these can be loaded: "),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("put libingot_lean.so of Ingot 9 beside libingot_dispatch.so as "
                         "libingot_lean.so.9, or give its path to IRuntime::loadRuntime(), or "
                         "build the engine anew"),
              std::string::npos)
        << error;
    uint64_t why = 0;
    EXPECT_EQ(runtime->getEngineValidity(other.data(), 64, &why),
              nvinfer1::EngineValidity::kINVALID);
    EXPECT_EQ(why, static_cast<uint64_t>(nvinfer1::EngineInvalidityDiagnostics::kVERSION_MISMATCH));
    logger().take();
    // By its path it is found anywhere.
    std::unique_ptr<nvinfer1::IRuntime> other_runtime(runtime->loadRuntime(OTHER_LEAN));
    ASSERT_NE(other_runtime, nullptr) << logger().take();
    EXPECT_EQ(other_runtime->deserializeCudaEngine(other.data(), other.size()), nullptr);
    EXPECT_NE(logger().take().find("other runtime"), std::string::npos);
}

TEST(Dispatch, LibrariesThatItCannotCallAreRefused) {
    Library dispatch(DISPATCH_LIBRARY);
    auto runtime = dispatch.runtime();
    EXPECT_EQ(runtime->loadRuntime(STRANGE_LEAN), nullptr);
    EXPECT_EQ(logger().take(),
              std::string("IRuntime::loadRuntime: '") + STRANGE_LEAN +
                  "' is of Ingot 7.1.0, whose runtime has interface 1000, this one has 1; use "
                  "libingot_dispatch.so of that release, or build the engine anew");
    EXPECT_EQ(runtime->loadRuntime("libm.so.6"), nullptr);
    EXPECT_EQ(logger().take(), "IRuntime::loadRuntime: 'libm.so.6' has no runtime of Ingot; give "
                               "the path of a libingot_lean.so");
    EXPECT_EQ(runtime->loadRuntime(nullptr), nullptr);
    EXPECT_EQ(logger().take(), "IRuntime::loadRuntime: the path is null");
}

} // namespace
} // namespace ingot::test
