// SPDX-License-Identifier: Apache-2.0
// All concurrent operations at once: each of eight threads performs all actions in its own order,
// on the CPU and on the CUDA backend. INGOT_THREADS_SEED=N gives other orders;
// INGOT_THREADS_SECONDS=N repeats the rounds for that long on each device.
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/backend.h"
#include "threads/quiet_gpu.h"
#include "threads/world.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>

namespace ingot::test {

namespace {

std::unique_ptr<nv::IHostMemory> build_plugged(nv::IBuilder& builder) {
    std::unique_ptr<nv::INetworkDefinition> network(builder.createNetworkV2(0));
    Product p(builder, 1);
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({-1, width}));
    Twice twice;
    nv::IPluginV3Layer* layer = network->addPluginV3(&x, 1, nullptr, 0, twice);
    EXPECT_NE(layer, nullptr) << logger().take_error();
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));
    return std::unique_ptr<nv::IHostMemory>(builder.buildSerializedNetwork(*network, *p.config));
}

std::unique_ptr<nv::IHostMemory> build_with(nv::IBuilder& builder, nv::BuilderFlag flag) {
    Product p(builder, 3);
    p.config->setFlag(flag);
    return p.build(builder);
}

uint64_t seed() {
    const char* chosen = std::getenv("INGOT_THREADS_SEED");
    return chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
}

/// The rounds of each thread: as many as given, or as the time allows that INGOT_THREADS_SECONDS
/// gives to all of them.
class Rounds {
public:
    explicit Rounds(int count) : count_(count) {
        if (const char* seconds = std::getenv("INGOT_THREADS_SECONDS")) {
            end_ = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoll(seconds));
        }
    }
    /// Whether a thread that has done `done` of them begins another.
    bool more(int done) const {
        return done < count_ || (end_ && std::chrono::steady_clock::now() < *end_);
    }

private:
    int count_;
    std::optional<std::chrono::steady_clock::time_point> end_;
};

std::vector<Action> all_actions() {
    std::vector<Action> all;
    for (std::span<const Action> some : {build_actions(), run_actions(), process_actions()}) {
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

} // namespace

World::World(bool gpu)
    : on_gpu(gpu), folder(testing::TempDir() + "ingot_threads_" + std::to_string(getpid())) {
    EXPECT_TRUE(getPluginRegistry()->registerCreator(twice, ""));
    builder.reset(nv::createInferBuilder(logger()));
    builder->setErrorRecorder(&recorder);
    builder->setGpuAllocator(&allocator);
    config.reset(builder->createBuilderConfig());
    ingot::setDevice(*config, device());
    timings.reset(config->createTimingCache(nullptr, 0));
    product = build(*builder, 3);
    refittable = build_with(*builder, nv::BuilderFlag::kREFIT);
    streamed = build_with(*builder, nv::BuilderFlag::kWEIGHT_STREAMING);
    plugged = build_plugged(*builder);
    runtime.reset(nv::createInferRuntime(logger()));
    EXPECT_TRUE(ingot::setDevice(*runtime, device()));
    runtime->setGpuAllocator(&allocator);
    runtime->setErrorRecorder(&recorder);
    engine = load(*product);
    plugged_engine = load(*plugged);
    std::unique_ptr<nv::IRuntimeConfig> run_config(engine->createRuntimeConfig());
    kernels.reset(run_config->createRuntimeCache());
}

void World::let_go() {
    kernels.reset();
    plugged_engine.reset();
    engine.reset();
    runtime.reset();
    timings.reset();
    config.reset();
    builder.reset();
}

World::~World() {
    EXPECT_TRUE(getPluginRegistry()->deregisterCreator(twice));
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}

class Everything : public testing::TestWithParam<bool> {
public:
    Everything() {
        ingot::setCacheFolder("");
        if (GetParam()) {
            backend = cuda::make_backend(gpu, 3);
            api::set_gpu(backend.get());
        }
        world = std::make_unique<World>(GetParam());
    }
    ~Everything() override {
        api::set_gpu(nullptr);
        ingot::setCacheFolder(nullptr);
    }

protected:
    QuietGpu gpu;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<World> world;
};

TEST_P(Everything, EightThreadsDoAllThatTheTableAllows) {
    World& w = *world;
    const Rounds rounds(w.on_gpu ? 1 : 4);
    std::atomic<int64_t> performed = 0;
    in_threads([&](int t) {
        SCOPED_TRACE("INGOT_THREADS_SEED=" + std::to_string(seed()));
        Worker me{t, std::mt19937_64(seed() * thread_count + static_cast<uint64_t>(t))};
        for (int round = 0; rounds.more(round); ++round) {
            std::vector<Action> actions = all_actions();
            std::shuffle(actions.begin(), actions.end(), me.random);
            for (const Action& a : actions) {
                a.run(w, me);
                me.pause();
                ++performed;
            }
        }
    });
    RecordProperty("actions", std::to_string(performed));
    EXPECT_GE(performed, thread_count * static_cast<int64_t>(all_actions().size()));
    EXPECT_EQ(w.recorder.errors, w.errors);
    EXPECT_EQ(gpu.launches > 0, w.on_gpu);
    w.let_go();
    EXPECT_EQ(w.allocator.live, 0);
    EXPECT_EQ(w.recorder.references, 0);
}

/// Owners may be deleted at any time: users keep what they need.
TEST_P(Everything, OwnersGoWhileOthersRun) {
    World& w = *world;
    std::vector<std::unique_ptr<nv::IExecutionContext>> contexts;
    for (int t = 0; t < thread_count; ++t) { // made here, used there
        contexts.emplace_back(w.engine->createExecutionContext());
    }
    in_threads([&](int t) {
        auto& c = contexts[static_cast<size_t>(t)];
        for (int i = 0; i < 10; ++i) {
            run(*c, 1 + (t + i) % 4, w.value(3));
            if (i == t) {
                if (t == 3) {
                    w.engine.reset();
                } else if (t == 5) {
                    w.runtime.reset();
                } else if (t == 6) {
                    w.kernels.reset();
                }
            }
        }
        c.reset();
    });
    EXPECT_EQ(logger().take_error(), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Everything, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace ingot::test
