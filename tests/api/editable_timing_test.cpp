// SPDX-License-Identifier: Apache-2.0
// Editable timing caches, used as in NVIDIA's sampleEditableTimingCache: the verbose log lists each
// layer's tactics, the next build takes an edited choice, and other layers keep theirs.
#include "api/network_fixture.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/backend.h"
#include "backends_cuda/timed_gpu.h"
#include "base/hash.h"
#include "ingot.h"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

namespace ingot::test {

namespace {

struct Record {
    std::string key;
    std::vector<std::pair<std::string, std::string>> tactics; // hash, kernel
    std::vector<double> costs;
    std::string selected;
};

/// A logger that parses the builder's timing lines as the sample does.
class TimingReader : public nv::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        if (severity <= Severity::kWARNING) {
            warnings.emplace_back(msg);
        }
        if (severity == Severity::kVERBOSE) {
            read(msg);
        }
    }
    std::map<std::string, Record> table;
    std::vector<std::string> warnings;

private:
    enum class Expects { Key, Header, Tactic, Choice };

    void read(const char* msg) {
        char a[129] = {};
        char b[129] = {};
        if (expects_ == Expects::Key) {
            const char* at = std::strstr(msg, "Autotuning op ");
            if (at != nullptr && std::sscanf(at + 14, "%128[^(](key: %128[^)])", a, b) == 2) {
                op_ = a;
                record_ = {b, {}, {}, {}};
                expects_ = Expects::Header;
            }
        } else if (expects_ == Expects::Header) {
            if (std::strstr(msg, "tactic_id, cost(in ms), cost/fastest_cost") != nullptr) {
                expects_ = Expects::Tactic;
            }
        } else if (expects_ == Expects::Tactic) {
            const char* at = std::strpbrk(msg, "0123456789");
            double cost = 0;
            if (at != nullptr &&
                std::sscanf(at, "%*d, %lf, %*f, %*f, %128[^,], %128[^,]", &cost, a, b) == 3) {
                record_.tactics.emplace_back(b, a);
                record_.costs.push_back(cost);
                return;
            }
            expects_ = Expects::Choice;
            read(msg);
        } else {
            const char* at = std::strstr(msg, "(tactic hash, cost(in ms)):");
            if (at != nullptr && std::sscanf(at + 27, "%128[^,]", a) == 1) {
                record_.selected = a;
                table[op_] = record_;
                expects_ = Expects::Key;
            }
        }
    }

    Expects expects_ = Expects::Key;
    std::string op_;
    Record record_;
};

/// The name of a kernel in a layer's line: `Name: matMul1, ... TacticName: dot simt, ...`.
std::map<std::string, std::string> kernels_of(const nv::ICudaEngine& engine) {
    std::unique_ptr<nv::IEngineInspector> inspector(engine.createEngineInspector());
    std::map<std::string, std::string> out;
    for (int32_t i = 0; i < engine.getNbLayers(); ++i) {
        const char* line = inspector->getLayerInformation(i, nv::LayerInformationFormat::kONELINE);
        const char* name = std::strstr(line, "Name: ");
        const char* tactic = std::strstr(line, "TacticName: ");
        char a[129] = {};
        char b[129] = {};
        if (name != nullptr && tactic != nullptr && std::sscanf(name + 6, "%128[^,]", a) == 1 &&
            std::sscanf(tactic + 12, "%128[^,]", b) == 1) {
            out[a] = b;
        }
    }
    return out;
}

class EditableTiming : public ::testing::Test {
protected:
    EditableTiming() : backend(cuda::make_backend(gpu)) {
        setCacheFolder("");
        api::set_gpu(backend.get());
        gpu.launch_us = [](const std::string& text, const cuda::LaunchShape&) {
            return 1 + static_cast<double>(hash_bytes(text.data(), text.size(), 0) % 9901) / 100;
        };
        builder.reset(nv::createInferBuilder(reader));
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
        runtime.reset(nv::createInferRuntime(reader));
        make_network();
    }
    ~EditableTiming() override {
        api::set_gpu(nullptr);
        setCacheFolder(nullptr);
    }
    /// Two products that differ in nothing but their names, and a softmax between them.
    void make_network() {
        auto square = [&](const char* name) {
            return network->addInput(name, nv::DataType::kFLOAT, dims({128, 128}));
        };
        auto product = [&](nv::ITensor& a, nv::ITensor& b, const char* name) {
            nv::ILayer* layer = network->addMatrixMultiply(a, nv::MatrixOperation::kNONE, b,
                                                           nv::MatrixOperation::kNONE);
            layer->setName(name);
            return layer->getOutput(0);
        };
        nv::ITensor* first = product(*square("input"), *square("weight1"), "matMul1");
        nv::ISoftMaxLayer* softmax = network->addSoftMax(*first);
        softmax->setName("softmax");
        network->markOutput(*product(*softmax->getOutput(0), *square("weight2"), "matMul2"));
        config->setProfilingVerbosity(nv::ProfilingVerbosity::kDETAILED);
    }
    std::unique_ptr<nv::ITimingCache> attach_cache() {
        std::unique_ptr<nv::ITimingCache> cache(config->createTimingCache(nullptr, 0));
        EXPECT_TRUE(config->setTimingCache(*cache, true));
        return cache;
    }
    std::unique_ptr<nv::ICudaEngine> build() {
        std::unique_ptr<nv::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        return std::unique_ptr<nv::ICudaEngine>(
            plan == nullptr ? nullptr : runtime->deserializeCudaEngine(plan->data(), plan->size()));
    }

    TimedGpu gpu;
    std::unique_ptr<Backend> backend;
    TimingReader reader;
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::IRuntime> runtime;
};

nv::TimingCacheKey parse_key(const std::string& text) {
    nv::TimingCacheKey key{};
    EXPECT_EQ(text.size(), 2 + 2 * sizeof key.data) << text;
    for (size_t i = 0; i < sizeof key.data; ++i) {
        EXPECT_EQ(std::sscanf(text.c_str() + 2 + 2 * i, "%2" SCNx8, &key.data[i]), 1) << text;
    }
    return key;
}

uint64_t parse_hash(const std::string& text) {
    return std::stoull(text.substr(2), nullptr, 16);
}

TEST_F(EditableTiming, ALayerUsesTheTacticThatItIsGivenAndOthersKeepTheirs) {
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<nv::ITimingCache> cache = attach_cache();
    std::unique_ptr<nv::ICudaEngine> engine = build();
    ASSERT_NE(engine, nullptr);
    std::map<std::string, Record> table = std::exchange(reader.table, {});
    ASSERT_TRUE(table.contains("matMul1") && table.contains("matMul2"));
    std::map<std::string, std::string> before = kernels_of(*engine);

    const Record& record = table["matMul1"];
    EXPECT_NE(record.key, table["matMul2"].key) << "each layer has its own entry";
    ASSERT_GE(record.tactics.size(), 3U);
    size_t best = 0;
    for (size_t i = 0; i < record.tactics.size(); ++i) {
        const auto& [hash, kernel] = record.tactics[i];
        best = record.costs[i] < record.costs[best] ? i : best;
        EXPECT_EQ(hash == record.selected, kernel == before["matMul1"]) << hash << ' ' << kernel;
    }
    nv::TimingCacheKey key = parse_key(record.key);
    EXPECT_EQ(cache->query(key).tacticHash, parse_hash(record.selected));
    EXPECT_NEAR(cache->query(key).timingMSec, record.costs[best], 1e-5);
    EXPECT_EQ(record.tactics[best].first, record.selected);

    for (const auto& [hash, kernel] : record.tactics) { // every one, the first choice too
        ASSERT_TRUE(cache->update(key, {parse_hash(hash), 1.0F}));
        engine = build();
        ASSERT_NE(engine, nullptr);
        std::map<std::string, std::string> now = kernels_of(*engine);
        EXPECT_EQ(now["matMul1"], kernel);
        EXPECT_EQ(now["matMul2"], before["matMul2"]);
    }
    EXPECT_TRUE(reader.table.empty()) << "what the cache knows is not timed again";
    EXPECT_TRUE(reader.warnings.empty()) << reader.warnings.front();
}

TEST_F(EditableTiming, EditsTravelWithTheCache) {
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<nv::ITimingCache> cache = attach_cache();
    ASSERT_NE(build(), nullptr);
    const Record record = reader.table.at("matMul2");
    const auto& [hash, kernel] = record.tactics[record.tactics[0].first == record.selected ? 1 : 0];
    ASSERT_TRUE(cache->update(parse_key(record.key), {parse_hash(hash), 1.0F}));
    std::unique_ptr<nv::IHostMemory> bytes(cache->serialize());
    std::unique_ptr<nv::ITimingCache> other(
        config->createTimingCache(bytes->data(), bytes->size()));
    cache.reset();
    ASSERT_TRUE(config->setTimingCache(*other, false));
    config->setFlag(nv::BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
    std::unique_ptr<nv::ICudaEngine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(kernels_of(*engine)["matMul2"], kernel);
}

TEST_F(EditableTiming, WithoutTheFlagEqualLayersShareAnEntry) {
    std::unique_ptr<nv::ITimingCache> cache = attach_cache();
    std::unique_ptr<nv::ICudaEngine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(reader.table.count("matMul1") + reader.table.count("matMul2"), 1U);
    std::map<std::string, std::string> kernels = kernels_of(*engine);
    EXPECT_EQ(kernels["matMul1"], kernels["matMul2"]);
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    ASSERT_NE(build(), nullptr);
    ASSERT_EQ(reader.warnings.size(), 1U);
    EXPECT_EQ(reader.warnings[0],
              "kEDITABLE_TIMING_CACHE is set, but the timing cache was made before: its entries "
              "cannot be changed, and layers share them; set the flag before createTimingCache()");
}

TEST_F(EditableTiming, ATacticThatALayerDoesNotHaveIsNamed) {
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<nv::ITimingCache> cache = attach_cache();
    std::unique_ptr<nv::ICudaEngine> engine = build();
    std::map<std::string, std::string> before = kernels_of(*engine);
    nv::TimingCacheKey key = parse_key(reader.table.at("matMul1").key);
    ASSERT_TRUE(cache->update(key, {0xabc, 1.0F}));
    engine = build();
    ASSERT_NE(engine, nullptr);
    ASSERT_GE(reader.warnings.size(), 1U);
    EXPECT_EQ(reader.warnings[0],
              "the timing cache gives layer 'matMul1' the tactic #0000000000000abc, which it does "
              "not have; it is chosen anew. The verbose log of a build with an empty cache lists a "
              "layer's tactics");
    EXPECT_EQ(kernels_of(*engine), before);
}

} // namespace

} // namespace ingot::test
