// SPDX-License-Identifier: Apache-2.0
#include "source_dir.h"
#include "threads/world.h"

#include <limits>

namespace ingot::test {
namespace {

class Monitor : public nv::IProgressMonitor {
public:
    void phaseStart(const char*, const char*, int32_t) noexcept override { ++phases; }
    bool stepComplete(const char*, int32_t) noexcept override { return !stop; }
    void phaseFinish(const char*) noexcept override { --phases; }
    std::atomic<int> phases{0};
    bool stop = false;
};

class Writer : public nv::IStreamWriter {
public:
    int64_t write(const void* data, int64_t n) override {
        const auto* bytes = static_cast<const char*>(data);
        all.insert(all.end(), bytes, bytes + n);
        return n;
    }
    std::vector<char> all;
};

/// A builder, a network, a configuration, a runtime and a context per thread; the timing cache is
/// shared.
void own_builder(World& w, Worker& me) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    builder->setErrorRecorder(&w.recorder);
    auto factor = static_cast<float>(me.number + 1);
    Product p(*builder, factor);
    Monitor monitor;
    p.config->setProgressMonitor(&monitor);
    p.config->setTimingCache(*w.timings, true);
    ingot::setDevice(*p.config, w.device());
    auto bytes = p.build(*builder);
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(monitor.phases, 0);
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger()));
    ASSERT_TRUE(ingot::setDevice(*runtime, w.device()));
    auto engine = load(*runtime, *bytes);
    ASSERT_NE(engine, nullptr) << logger().take_error();
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    ASSERT_NE(c, nullptr) << logger().take_error();
    builder.reset();
    runtime.reset();
    engine.reset();
    run(*c, 1 + me.below(4), w.value(factor));
}

/// The builder is shared, network and configuration are per thread.
void shared_builder(World& w, Worker& me) {
    auto factor = static_cast<float>(me.below(100));
    Product p(*w.builder, factor);
    ingot::setDevice(*p.config, w.device());
    EXPECT_TRUE(w.builder->isNetworkSupported(*p.network, *p.config));
    static_cast<void>(w.builder->platformHasFastFp16()); // DeviceAtHand has the answers
    EXPECT_EQ(w.builder->getErrorRecorder(), &w.recorder);
    EXPECT_EQ(w.builder->getLogger(), &logger());
    EXPECT_GE(w.builder->getMaxThreads(), 1);
    EXPECT_NE(w.builder->getPluginRegistry().getCreator(Twice::name, "1", ""), nullptr);
    if (me.below(2) == 0) {
        std::unique_ptr<nv::ICudaEngine> engine(
            w.builder->buildEngineWithConfig(*p.network, *p.config));
        ASSERT_NE(engine, nullptr);
        std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
        run(*c, 2, w.value(factor));
    } else {
        Writer writer;
        ASSERT_TRUE(w.builder->buildSerializedNetworkToStream(*p.network, *p.config, writer));
        EXPECT_FALSE(writer.all.empty());
    }
}

/// Builds that fail and builds that are stopped do not affect concurrent builds.
void failing_builds(World& w, Worker&) {
    std::unique_ptr<nv::INetworkDefinition> network(w.builder->createNetworkV2(0));
    std::unique_ptr<nv::IBuilderConfig> config(w.builder->createBuilderConfig());
    network->addInput("x", nv::DataType::kFLOAT, dims({1}));
    w.expect_error(); // no outputs
    EXPECT_EQ(w.builder->buildSerializedNetwork(*network, *config), nullptr);
    w.expect_error();
    EXPECT_EQ(w.builder->createNetworkV2(std::numeric_limits<uint32_t>::max()), nullptr);
    Product p(*w.builder, 1);
    Monitor monitor;
    monitor.stop = true;
    p.config->setProgressMonitor(&monitor);
    w.expect_error();
    EXPECT_EQ(p.build(*w.builder), nullptr);
}

void parse(World& w, Worker& me) {
    std::unique_ptr<nv::INetworkDefinition> network(w.builder->createNetworkV2(0));
    std::unique_ptr<nv::IBuilderConfig> config(w.builder->createBuilderConfig());
    ingot::setDevice(*config, w.device());
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger()));
    if (me.below(2) == 0) {
        w.expect_error();
        EXPECT_FALSE(parser->parse("no model", 8));
        EXPECT_GT(parser->getNbErrors(), 0);
        EXPECT_NE(parser->getError(0)->desc(), nullptr);
        return;
    }
    EXPECT_TRUE(parser->supportsOperator("Conv"));
    ASSERT_TRUE(parser->parseFromFile((source_dir() + "/examples/digits/digits.onnx").c_str(), 2));
    std::unique_ptr<nv::IHostMemory> bytes(w.builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(bytes, nullptr);
    auto engine = w.load(*bytes);
    ASSERT_NE(engine, nullptr);
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    EXPECT_NE(c, nullptr);
}

/// A cache per thread, filled from the shared one while builds extend that.
void timing_caches(World& w, Worker&) {
    std::unique_ptr<nv::ITimingCache> own(w.config->createTimingCache(nullptr, 0));
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(own->combine(*w.timings, true));
    std::vector<nv::TimingCacheKey> keys(static_cast<size_t>(own->queryKeys(nullptr, 0)));
    own->queryKeys(keys.data(), static_cast<int64_t>(keys.size()));
    for (const nv::TimingCacheKey& k : keys) {
        EXPECT_NE(own->query(k).tacticHash, nv::TimingCacheValue::kINVALID_TACTIC_HASH);
        EXPECT_NE(w.timings->query(k).tacticHash, nv::TimingCacheValue::kINVALID_TACTIC_HASH);
    }
    std::unique_ptr<nv::IHostMemory> bytes(w.timings->serialize());
    ASSERT_NE(bytes, nullptr);
    std::unique_ptr<nv::ITimingCache> again(
        w.config->createTimingCache(bytes->data(), bytes->size()));
    ASSERT_NE(again, nullptr);
    EXPECT_GE(again->queryKeys(nullptr, 0), static_cast<int64_t>(keys.size()));
}

} // namespace

std::span<const Action> build_actions() {
    static const Action all[] = {{"own_builder", own_builder},
                                 {"shared_builder", shared_builder},
                                 {"failing_builds", failing_builds},
                                 {"parse", parse},
                                 {"timing_caches", timing_caches}};
    return all;
}

} // namespace ingot::test
