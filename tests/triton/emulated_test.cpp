// SPDX-License-Identifier: Apache-2.0
// Instances on an emulated GPU: what is compiled when, and what bits come out.
#include "plugins/common/device_memory.h"
#include "tests/triton/emulated.h"

#include <numeric>
#include <random>
#include <thread>

namespace ingot::triton {
namespace {

namespace nv = nvinfer1;

/// The compiler stands still: requests of shapes beyond the buckets take the general kernels, which
/// the instance has since it was made. Once it goes on, the fitted ones take over.
TEST_F(TritonEmulated, NoRequestWaitsForTheCompilerBeyondTheBuckets) {
    Scene scene(turning_engine(99), R"({"parameters":{"buckets":{"string_value":"3"}}})");
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    int64_t general = loaded(0) + 1; // the one that is loaded next
    ASSERT_EQ(scene.start(), "");
    auto end = Clock::now() + patience;
    while (newest(0) <= general) { // until the one for the bucket has come
        turn(scene, 3);
        ASSERT_LT(Clock::now(), end) << "no kernel was fitted to the bucket";
    }
    hold(1);
    while (waiting() == 0) {
        turn(scene, 64);
        ASSERT_LT(Clock::now(), end) << "nothing was compiled for the new shape";
    }
    int64_t before = -1;
    while (before != loaded(0)) { // those that were compiled just before
        before = loaded(0);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    int64_t fitted = newest(0);
    for (int64_t rows : {64, 65, 66}) {
        turn(scene, rows);
    }
    EXPECT_EQ(loaded(0), before); // they ran without any kernel of their own
    EXPECT_GE(FakeHost::get().values.at("ingot_unprepared_shapes{model=model,version=1}"), 3);
    hold(0);
    while (newest(0) == fitted) {
        turn(scene, 64);
        ASSERT_LT(Clock::now(), end) << "the fitted kernels were never launched";
    }
}

TEST_F(TritonEmulated, CompilingGivesWayToTheRequestsOfOtherModels) {
    auto cube = [](nv::INetworkDefinition& n) { // no other test has compiled it in this process
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{2, {-1, 3}});
        auto product = nv::ElementWiseOperation::kPROD;
        nv::ITensor* square = n.addElementWise(*x, *x, product)->getOutput(0);
        n.markOutput(*n.addElementWise(*square, *x, product)->getOutput(0));
    };
    Scene scene(build_engine(cube));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(0), "");
    hold(1);
    std::string text = "not started";
    std::thread starting([&] { text = scene.start_instances(1); });
    auto end = Clock::now() + patience;
    while (waiting() == 0 && Clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    int compiling = waiting();
    int nice = niceness();
    hold(0);
    starting.join();
    EXPECT_EQ(text, "");
    EXPECT_GT(compiling, 0);
    EXPECT_EQ(nice, 19);
}

/// A driver lets cuMemAlloc and cuMemFree wait for all work of the process, and no work begin
/// meanwhile; streams are made under its lock too.
TEST_F(TritonEmulated, LoadsAndUnloadsStopNoRunOfOtherModels) {
    int64_t stopping_before = stopping(0);
    int64_t streams_before = streams(0);
    Scene scene(turning_engine(32)); // 32 shapes of the profile are looked at
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(), "");
    turn(scene, 3);
    scene.stop();
    EXPECT_EQ(stopping(0) - stopping_before, 0);
    EXPECT_LE(streams(0) - streams_before, 8); // of weights, context, instance, tuning
}

TEST_F(TritonEmulated, RunsOfRequestsGoBeforeWarmUps) {
    Scene scene(turning_engine(8));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(0), "");
    for (int instance = 0; instance < 2; ++instance) {
        SCOPED_TRACE(instance);
        int64_t usual = launches(0, false);
        int64_t urgent = launches(0, true);
        ASSERT_EQ(scene.start_instances(1), "");
        EXPECT_GT(launches(0, false), usual);
        EXPECT_EQ(launches(0, true), urgent);
        usual = launches(0, false);
        urgent = launches(0, true);
        for (int64_t rows : {1, 3, 8}) {
            turn(scene, rows);
        }
        EXPECT_GT(launches(0, true), urgent);
        EXPECT_EQ(launches(0, false), usual);
    }
}

/// A load takes time of the GPU from the models that are served.
TEST_F(TritonEmulated, EachBucketRunsOnceAtLoadAndIsRecorded) {
    Scene scene(turning_engine(8));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(0), "");
    constexpr int64_t buckets = 4;
    for (int instance = 0; instance < 2; ++instance) {
        SCOPED_TRACE(instance);
        int64_t executed_before = executed(0);
        int64_t graphs_before = graphs(0);
        ASSERT_EQ(scene.start_instances(1), "");
        int64_t of_load = executed(0) - executed_before;
        EXPECT_EQ(graphs(0) - graphs_before, buckets);
        turn(scene, 8);
        int64_t of_a_request = executed(0) - executed_before - of_load;
        EXPECT_GT(of_a_request, 0);
        EXPECT_EQ(of_load, buckets * of_a_request);
        for (int64_t rows : {1, 2, 4, 8}) {
            turn(scene, rows);
        }
        EXPECT_EQ(graphs(0) - graphs_before, buckets);
    }
}

TEST_F(TritonEmulated, EachOfSixteenBucketsIsRecorded) {
    std::string buckets;
    constexpr int64_t count = 16;
    for (int64_t rows = 1; rows <= count; ++rows) {
        buckets += str(rows == 1 ? "" : ",", rows);
    }
    Scene scene(turning_engine(count),
                str(R"({"parameters":{"buckets":{"string_value":")", buckets, R"("}}})"));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    int64_t before = graphs(0);
    ASSERT_EQ(scene.start(), "");
    EXPECT_EQ(graphs(0) - before, count);
    for (int64_t rows : {count, int64_t{1}}) {
        turn(scene, rows);
    }
    EXPECT_EQ(graphs(0) - before, count); // none made way
}

/// The run is queued between the copies: on their stream, of which no other waits.
TEST_F(TritonEmulated, ASmallRequestAsksTheDriverForLittle) {
    Scene scene(turning_engine(1));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(), "");
    turn(scene, 1);
    std::vector<std::string> names = {"cuMemcpyAsync",       "cuGraphLaunch",
                                      "cuEventRecord",       "cuStreamWaitEvent",
                                      "cuStreamSynchronize", "cuStreamIsCapturing"};
    std::vector<int64_t> before;
    for (const std::string& n : names) {
        before.push_back(counted(0, n.c_str()));
    }
    int64_t all_before = counted(0, "");
    int64_t hops_before = hops(0);
    turn(scene, 1);
    int64_t all = counted(0, "") - all_before;
    EXPECT_EQ(hops(0), hops_before);
    std::vector<int64_t> calls;
    for (size_t i = 0; i < names.size(); ++i) {
        calls.push_back(counted(0, names[i].c_str()) - before[i]);
    }
    EXPECT_EQ(calls, (std::vector<int64_t>{2, 1, 1, 1, 1, 2}));
    EXPECT_EQ(all, std::accumulate(calls.begin(), calls.end(), int64_t{0}));
}

/// Sizes that are never asked for again would keep others from being kept.
TEST_F(TritonEmulated, PinnedMemoryThatWasUsedLastIsKept) {
    std::shared_ptr<DeviceMemory> gpu = open_gpu(0);
    auto use = [&](size_t bytes) {
        void* memory = gpu->allocate_staging(bytes);
        gpu->release_staging(memory);
        return memory;
    };
    int64_t before = locking(0);
    use(40 << 20);
    void* usual = use(19 << 20); // at most half of a block may be left over
    EXPECT_EQ(locking(0) - before, 2);
    void* small = use(9 << 20); // for which the first one makes way
    EXPECT_EQ(locking(0) - before, 4);
    EXPECT_EQ(use(9 << 20), small);
    EXPECT_EQ(use(19 << 20), usual);
    EXPECT_EQ(locking(0) - before, 4);
    use(40 << 20); // the smallest is now the one that was unused for longest
    EXPECT_EQ(use(19 << 20), usual);
    EXPECT_EQ(locking(0) - before, 6);
    gpu.reset();
    EXPECT_EQ(locking(0) - before, 8) << "all of it is given back";
}

/// Bytes of an engine: `y` f32[n, 24] is a product of `x` f32[n, 800], a normalisation and a
/// softmax: long sums, which kernels divide by the size of the batch.
std::string summing_engine(int32_t most, bool invariant) {
    constexpr int32_t depth = 800;
    constexpr int32_t width = 24;
    static const std::vector<float> weights = [] {
        std::vector<float> w(static_cast<size_t>(depth) * width);
        std::mt19937 random(5);
        std::normal_distribution<float> normal(0, 0.1F);
        for (float& v : w) {
            v = normal(random);
        }
        return w;
    }();
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{2, {-1, depth}});
        nv::Weights w{nv::DataType::kFLOAT, weights.data(), int64_t{depth} * width};
        nv::ITensor* c = n.addConstant(nv::Dims{2, {depth, width}}, w)->getOutput(0);
        auto none = nv::MatrixOperation::kNONE;
        nv::ITensor* product = n.addMatrixMultiply(*x, none, *c, none)->getOutput(0);
        nv::ISoftMaxLayer* softmax = n.addSoftMax(*product);
        softmax->setAxes(2);
        nv::ITensor* y = softmax->getOutput(0);
        y->setName("y");
        n.markOutput(*y);
    };
    return build_engine(fill, {{"x", {nv::Dims{2, {1, depth}}, nv::Dims{2, {most, depth}}}}},
                        [&](nv::IBuilderConfig& config) {
                            if (invariant) {
                                config.setFlag(nv::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
                            }
                        });
}

/// Requests of one to three rows of summing_engine.
class Sums {
public:
    explicit Sums(size_t count) {
        std::mt19937 random(11);
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < count; ++i) {
            std::vector<float> values((1 + i % 3) * 800);
            for (float& v : values) {
                v = normal(random);
            }
            values_.push_back(values);
        }
    }
    size_t count() const { return values_.size(); }
    /// The answers' bits, in one call of an instance. Errors are failures of the test.
    std::vector<std::vector<float>> ask(Scene& scene, const std::vector<size_t>& which,
                                        size_t instance = 0) const {
        std::vector<TRITONBACKEND_Request> requests(which.size());
        std::vector<TRITONBACKEND_Request*> list;
        for (size_t i = 0; i < which.size(); ++i) {
            const std::vector<float>& v = values_[which[i]];
            auto rows = static_cast<int64_t>(v.size() / 800);
            requests[i].inputs.push_back(float_input("x", {rows, 800}, v));
            requests[i].outputs = {"y"};
            list.push_back(&requests[i]);
        }
        EXPECT_EQ(scene.execute(list, instance), "");
        std::vector<std::vector<float>> out;
        for (const TRITONBACKEND_Request& r : requests) {
            EXPECT_FALSE(r.answered_error) << r.text;
            out.push_back(r.answered_error ? std::vector<float>() : floats(r.results.at("y")));
        }
        return out;
    }

private:
    std::vector<std::vector<float>> values_;
};

/// A driver locks and unlocks pages under the lock that launches take, in milliseconds, and waits
/// for the GPU's work before it unlocks some.
TEST_F(TritonEmulated, LoadsAfterTheFirstLockNoPages) {
    Scene scene(summing_engine(16, false));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(), "");
    Sums sums(3);
    std::vector<std::vector<float>> expected = sums.ask(scene, {0, 1, 2});
    int64_t before = locking(0);
    EXPECT_GT(before, 0);
    for (int load = 0; load < 2; ++load) {
        scene.stop_model();
        ASSERT_EQ(scene.start_model(), "");
        ASSERT_EQ(scene.start_instances(1), "");
        EXPECT_EQ(sums.ask(scene, {0, 1, 2}), expected);
    }
    EXPECT_EQ(locking(0), before);
}

/// How many answers in shared batches have other bits than alone: requests at every place of
/// batches of two to five, by two instances, in buckets of up to 16 rows.
size_t other_bits(bool invariant, const std::function<void()>& settle) {
    Scene scene(summing_engine(16, invariant));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    EXPECT_EQ(scene.start(2), "");
    Sums sums(12);
    std::vector<std::vector<float>> alone;
    for (size_t i = 0; i < sums.count(); ++i) {
        alone.push_back(sums.ask(scene, {i})[0]);
    }
    settle();
    size_t other = 0;
    std::mt19937 random(3);
    for (size_t round = 0; round < 40; ++round) {
        std::vector<size_t> which(2 + round % 4);
        for (size_t& w : which) {
            w = random() % sums.count();
        }
        std::vector<std::vector<float>> got = sums.ask(scene, which, round % 2);
        for (size_t i = 0; i < which.size(); ++i) {
            other += got[i] == alone[which[i]] ? 0 : 1;
        }
    }
    return other;
}

/// The general kernels, and then those that were fitted to each bucket.
TEST_F(TritonEmulated, BitsDoNotDependOnNeighboursIfTheEngineIsBuiltForIt) {
    auto at_once = [] {};
    auto once_fitted = [this] {
        auto end = Clock::now() + patience;
        for (int last = -1; last != compiled() || waiting() != 0;) {
            last = compiled();
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            ASSERT_LT(Clock::now(), end) << "the compiler does not come to an end";
        }
    };
    EXPECT_EQ(other_bits(true, at_once), 0U);
    EXPECT_EQ(other_bits(true, once_fitted), 0U);
    EXPECT_GT(other_bits(false, once_fitted), 0U); // else this test shows nothing
}

} // namespace
} // namespace ingot::triton
