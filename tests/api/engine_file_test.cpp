// SPDX-License-Identifier: Apache-2.0
// Engines in files, and their identity: ingot::buildToFile(), deserializeFile(), engineDigest();
// engines that are built to run at once.
#include "api/network_fixture.h"
#include "base/file.h"
#include "ingot.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

namespace ingot::test {

namespace {

namespace fs = std::filesystem;

constexpr int64_t width = 48; // of weights that lie outside the graph's section

class EngineFiles : public NetworkTest {
protected:
    void SetUp() override {
        runtime.reset(nv::createInferRuntime(logger));
        ASSERT_TRUE(setDevice(*runtime, Device::kCPU) && setDevice(*config, Device::kCPU));
        folder = fs::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
        fs::remove_all(folder);
        fs::create_directories(folder);
        nv::ITensor& x = input("x", {2, width});
        weight = numbers({width, width});
        nv::ILayer* product = network->addMatrixMultiply(
            x, nv::MatrixOperation::kNONE, constant(weight), nv::MatrixOperation::kNONE);
        product->getOutput(0)->setName("y");
        network->markOutput(*product->getOutput(0));
    }
    void TearDown() override { fs::remove_all(folder); }

    std::string path(const char* name) const { return (folder / name).string(); }
    std::string bytes_of(const std::string& file) const {
        auto map = MappedFile::open(file);
        return {reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size()};
    }
    std::string serialized() {
        std::unique_ptr<nv::IHostMemory> m(builder->buildSerializedNetwork(*network, *config));
        return m == nullptr ? "" : std::string(static_cast<const char*>(m->data()), m->size());
    }
    std::unique_ptr<nv::ICudaEngine> load(const EngineFile& file) {
        return std::unique_ptr<nv::ICudaEngine>(deserializeFile(*runtime, file));
    }
    static std::string digest_of(const std::string& bytes) {
        char text[65] = "";
        return engineDigest(bytes.data(), bytes.size(), text) ? text : "";
    }
    /// Compares a run with a product in f64.
    void expect_runs(nv::ICudaEngine& engine) {
        Tensor x = numbers({2, width}, -1, 1);
        Tensor y = Tensor::empty(DType::F32, {2, width});
        std::unique_ptr<nv::IExecutionContext> c(engine.createExecutionContext());
        ASSERT_NE(c, nullptr) << take_error();
        ASSERT_TRUE(c->setTensorAddress("x", const_cast<std::byte*>(x.bytes().data())) &&
                    c->setTensorAddress("y", const_cast<std::byte*>(y.bytes().data())) &&
                    c->enqueueV3(nullptr))
            << take_error();
        for (int64_t i = 0; i < 2 * width; ++i) {
            double sum = 0;
            for (int64_t k = 0; k < width; ++k) {
                sum += x.get_f64(i / width * width + k) * weight.get_f64(k * width + i % width);
            }
            ASSERT_NEAR(y.get_f64(i), sum, 1e-4) << i;
        }
    }
    std::unique_ptr<nv::IRuntime> runtime;
    fs::path folder;
    Tensor weight;
};

} // namespace

TEST_F(EngineFiles, FileHasTheBytesOfTheSerializedNetwork) {
    write_file(path("a.engine"), std::string_view("what was there"));
    ASSERT_TRUE(buildToFile(*builder, *network, *config, path("a.engine").c_str())) << take_error();
    EXPECT_EQ(bytes_of(path("a.engine")), serialized());
    auto engine = load({path("a.engine").c_str()});
    ASSERT_NE(engine, nullptr) << take_error();
    fs::remove(path("a.engine")); // it may go
    expect_runs(*engine);
}

TEST_F(EngineFiles, FailedBuildLeavesWhatWasThere) {
    write_file(path("a.engine"), std::string_view("what was there"));
    config->setFlag(nv::BuilderFlag::kSAFETY_SCOPE);
    EXPECT_FALSE(buildToFile(*builder, *network, *config, path("a.engine").c_str()));
    EXPECT_NE(take_error().find("ingot::buildToFile: kSAFETY_SCOPE is set"), std::string::npos);
    EXPECT_EQ(bytes_of(path("a.engine")), "what was there");
    config->clearFlag(nv::BuilderFlag::kSAFETY_SCOPE);
    EXPECT_FALSE(buildToFile(*builder, *network, *config, path("none/a.engine").c_str()));
    EXPECT_NE(take_error().find("none/a.engine"), std::string::npos);
    EXPECT_FALSE(buildToFile(*builder, *network, *config, ""));
    EXPECT_NE(take_error().find("the path is empty"), std::string::npos);
    EXPECT_FALSE(ingotBuildToFile(nullptr, network.get(), config.get(), "a"));
}

TEST_F(EngineFiles, OnlyTheFileThatWasAskedFor) {
    std::string bytes = serialized();
    fs::create_directories(folder / "in");
    write_file(path("in/a.engine"), std::string_view(bytes));
    write_file(path("b.engine"), std::string_view(bytes));
    std::string inside = path("in");
    std::string digest = digest_of(bytes);
    auto engine = load({"a.engine", inside.c_str(), digest.c_str()});
    ASSERT_NE(engine, nullptr) << take_error();
    expect_runs(*engine);

    EXPECT_EQ(load({"../b.engine", inside.c_str()}), nullptr);
    EXPECT_NE(take_error().find("../b.engine"), std::string::npos);
    EXPECT_EQ(load({"none.engine", inside.c_str()}), nullptr);
    EXPECT_NE(take_error().find("none.engine"), std::string::npos);
    EXPECT_EQ(load({nullptr}), nullptr);
    EXPECT_NE(take_error().find("the path is null"), std::string::npos);
    EXPECT_EQ(ingotDeserializeFile(nullptr, nullptr), nullptr);

    std::string other(64, '0');
    EXPECT_EQ(load({"a.engine", inside.c_str(), other.c_str()}), nullptr);
    std::string error = take_error();
    EXPECT_NE(error.find("a.engine is another engine: got " + digest + ", expected " + other),
              std::string::npos)
        << error;
}

TEST_F(EngineFiles, DamageIsFoundInEveryByte) {
    std::string bytes = serialized();
    std::string digest = digest_of(bytes);
    size_t step = std::max<size_t>(1, bytes.size() / 500);
    for (size_t at = 0; at < bytes.size(); at += step) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 4);
        write_file(path("a.engine"), std::string_view(damaged));
        EXPECT_EQ(load({path("a.engine").c_str(), nullptr, digest.c_str()}), nullptr)
            << "byte " << at << " of " << bytes.size();
        EXPECT_NE(take_error(), "");
    }
}

TEST_F(EngineFiles, DigestIsOfHeaderAndTable) {
    std::string bytes = serialized();
    std::string digest = digest_of(bytes);
    ASSERT_EQ(digest.size(), 64U);
    EXPECT_EQ(digest_of(serialized()), digest);
    EXPECT_EQ(digest_of(bytes.substr(0, 8192)), digest);
    EXPECT_EQ(digest_of(bytes.substr(0, 100)), ""); // within the table
    EXPECT_EQ(digest_of("no engine"), "");
    EXPECT_FALSE(ingotEngineDigest(nullptr, 0, digest.data()));
    EXPECT_EQ(digest_of(bytes), digest);
    std::string damaged = bytes;
    damaged[70] = static_cast<char>(damaged[70] ^ 1); // in the table
    EXPECT_EQ(digest_of(damaged), "");
    Tensor other = numbers({width, width});
    other.set_f64(5, 0.25);
    static_cast<nv::IConstantLayer*>(network->getLayer(0))->setWeights(weights(other));
    std::string changed = serialized();
    EXPECT_EQ(changed.size(), bytes.size()); // one element differs
    EXPECT_NE(digest_of(changed), digest);
    EXPECT_EQ(digest_of(changed).size(), 64U);
}

TEST_F(EngineFiles, BuiltEngineHasWeightsOfItsOwn) {
    std::string bytes = serialized();
    std::unique_ptr<nv::ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    ASSERT_NE(engine, nullptr) << take_error();
    network.reset();
    for (const Tensor& t : kept) { // the caller's memory is its own again
        std::memset(const_cast<std::byte*>(t.bytes().data()), 0xff, t.bytes().size());
    }
    weight = numbers({width, width});
    expect_runs(*engine);
    std::unique_ptr<nv::IHostMemory> again(engine->serialize());
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(std::string(static_cast<const char*>(again->data()), again->size()), bytes);
}

TEST_F(EngineFiles, BuiltEngineCanBeRefitted) {
    config->setFlag(nv::BuilderFlag::kREFIT);
    ASSERT_TRUE(network->setWeightsName(
        static_cast<nv::IConstantLayer*>(network->getLayer(0))->getWeights(), "w"));
    std::unique_ptr<nv::ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    ASSERT_NE(engine, nullptr) << take_error();
    network.reset();
    expect_runs(*engine);
    weight = numbers({width, width}, 3, 4);
    std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine, logger));
    ASSERT_TRUE(refitter->setNamedWeights("w", weights(weight)) && refitter->refitCudaEngine())
        << take_error();
    expect_runs(*engine);
}

} // namespace ingot::test
