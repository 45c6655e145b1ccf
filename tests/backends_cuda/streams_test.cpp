// SPDX-License-Identifier: Apache-2.0
// Work on streams, as the driver sees it: a caller's captures, the event for inputs, times
// requested for later, the reserved part of the cache, and the current device.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/error.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::test {
namespace {

using Log = std::vector<std::string>;

/// Two softmaxes with a transpose between, then one of another input's.
Graph three_steps() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,32]"));
    Value s = ops::softmax(g, x, 1);
    Value t = ops::softmax(g, ops::permute(g, s, {1, 0}), 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, t, {1, 0}), 1));
    return g;
}

class Streams : public testing::Test {
protected:
    void SetUp() override {
        fake::reset();
        fake::set_current(-1);
        start(true);
    }
    void start(bool records, bool first = false) {
        execution.reset();
        backend.reset();
        gpu = fake::make_gpu();
        backend = cuda::make_backend(*gpu, 1);
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        o.of<CudaOptions>().record_graphs = records;
        o.of<CudaOptions>().record_first = first;
        execution =
            backend->compile(std::make_shared<const Graph>(three_steps()), o)->create_execution();
        constexpr int64_t largest = int64_t{64} * 32 * 4; // of the shapes here
        in = {{gpu->allocate(largest), {4, 32}}};
        out = {{gpu->allocate(largest), {}}};
        fake::take_log();
    }
    ~Streams() override {
        fake::capture(nullptr);
        execution.reset();
    }
    Status enqueue(void* stream = nullptr) { return execution->enqueue(in, out, stream, {}); }
    /// The driver's log without one kind of entry.
    static Log log_without(std::string_view what) {
        Log log = fake::take_log();
        log.erase(std::remove(log.begin(), log.end(), what), log.end());
        return log;
    }

    std::unique_ptr<cuda::Gpu> gpu;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Execution> execution;
    std::vector<Binding> in;
    std::vector<Binding> out;
    int caller = 0; // its address stands for a stream
};

/// The event is for work on other streams: the next run's, if it is on another.
TEST_F(Streams, ARunIsQueuedOnTheCallersStream) {
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    EXPECT_EQ(fake::take_log(), (Log{"launch", "launch", "launch", "record"}));
    fake::set_priority_of(&caller, -3);
    fake::take_work();
    ASSERT_TRUE(enqueue(&caller).ok()); // is recorded, and replayed from then on
    EXPECT_EQ(fake::take_work().back(), "launch a graph at -3"); // no stream of ours has that
    fake::take_log();
    ASSERT_TRUE(enqueue(&caller).ok());
    EXPECT_EQ(fake::take_log(), (Log{"wait", "launch a graph", "record"}));
    int other = 0;
    ASSERT_TRUE(enqueue(&other).ok());
    EXPECT_EQ(fake::take_log(), (Log{"wait", "launch a graph", "record"}));
    EXPECT_EQ(fake::unordered(), 0);
}

TEST_F(Streams, TheFirstRunIsRecordedWhereThatIsAskedFor) {
    start(true, true);
    fake::take_work();
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    Log recorded(3, "recorded launch at 0");
    recorded.emplace_back("launch a graph at 0");
    EXPECT_EQ(fake::take_work(), recorded);
    ASSERT_TRUE(enqueue(&caller).ok());
    EXPECT_EQ(fake::take_work(), Log{"launch a graph at 0"});
    std::swap(in[0].address, out[0].address); // other addresses are another recording
    ASSERT_TRUE(enqueue(&caller).ok());
    EXPECT_EQ(fake::take_work(), recorded);
}

TEST_F(Streams, AFirstRunThatCannotBeRecordedIsPlain) {
    start(true, true);
    fake::take_work();
    auto ready = [this] { // kernels are loaded when a plan is made
        std::vector<Shape> shapes = {{4, 32}};
        execution->prepare(shapes);
    };
    ready();
    int64_t calls = fake::calls();
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    calls = fake::calls() - calls;
    for (int64_t n = 1; n <= calls; ++n) {
        SCOPED_TRACE(n);
        start(true, true);
        ready();
        fake::fail_call(n, 999, false);
        bool done = enqueue(&caller).ok();
        EXPECT_EQ(done || execution->error().find("CUDA_ERROR_FAKE") != std::string::npos, true)
            << execution->error();
        fake::fail_call(0, 0, false);
        ASSERT_TRUE(enqueue(&caller).ok()) << execution->error(); // records what is not yet
        fake::take_work();
        ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
        EXPECT_EQ(fake::take_work(), Log{"launch a graph at 0"});
    }
}

TEST_F(Streams, ADefaultStreamIsJoinedByEvents) {
    ASSERT_TRUE(enqueue().ok()) << execution->error();
    EXPECT_EQ(fake::take_log(),
              (Log{"record", "wait", "launch", "launch", "launch", "record", "wait"}));
    ASSERT_TRUE(enqueue().ok()); // is recorded, and replayed from then on
    fake::take_log();
    ASSERT_TRUE(enqueue().ok());
    EXPECT_EQ(fake::take_log(), (Log{"record", "wait", "launch a graph", "record", "wait"}));
    ASSERT_TRUE(enqueue(&caller).ok()); // behind the run before
    EXPECT_EQ(fake::take_log(), (Log{"record", "wait", "launch a graph", "record"}));
    ASSERT_TRUE(enqueue().ok());
    EXPECT_EQ(fake::take_log(),
              (Log{"wait", "record", "wait", "launch a graph", "record", "wait"}));
}

/// On streams that come and go, with runs from the host's memory and runs that fail between.
TEST_F(Streams, RunsOfAnExecutionStayInOrder) {
    std::vector<Tensor> host = {Tensor::zeros(DType::F32, {4, 32})};
    std::vector<Tensor> results(1);
    int callers[3] = {};
    std::mt19937 random(7);
    for (bool records : {false, true}) {
        start(records);
        int failed = 0;
        for (int run = 0; run < 600; ++run) {
            bool fails = random() % 8 == 0;
            if (fails) {
                fake::fail_call(1 + static_cast<int64_t>(random() % 6), 2, false);
            }
            size_t where = random() % 5;
            bool done = where == 4   ? execution->run(host, results).ok()
                        : where == 3 ? enqueue().ok()
                                     : enqueue(&callers[where]).ok();
            failed += done ? 0 : 1;
            fake::fail_call(0, 0, false);
            ASSERT_TRUE(done || fails) << execution->error();
            if (where < 3 && random() % 3 == 0) {
                fake::replace_stream(&callers[where]);
            }
            ASSERT_EQ(fake::unordered(), 0) << "run " << run;
        }
        EXPECT_GT(failed, 20);
    }
}

TEST_F(Streams, TheHostWaitsForARunThatNoEventIsRecordedBehind) {
    start(false);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    fake::take_log();
    fake::fail_call(5, 2, false); // the wait, three launches, the event
    EXPECT_FALSE(enqueue(&caller).ok());
    EXPECT_NE(execution->error().find("cuEventRecord"), std::string::npos) << execution->error();
    fake::replace_stream(&caller);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    EXPECT_EQ(fake::unordered(), 0);
}

TEST_F(Streams, ACaptureTakesTheLaunchesAndNoGraphOfOurs) {
    std::vector<Shape> shapes = {{4, 32}};
    EXPECT_FALSE(execution->capturable(shapes));
    fake::capture(&caller);
    EXPECT_FALSE(enqueue(&caller).ok());
    EXPECT_EQ(execution->error(),
              "the run cannot be captured: enqueue one with these shapes outside of the capture "
              "first, which loads kernels and weights");
    EXPECT_EQ(fake::take_log(), Log()); // the capture goes on
    fake::capture(nullptr);
    for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    }
    EXPECT_TRUE(execution->capturable(shapes));
    fake::take_log();
    fake::capture(&caller);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    EXPECT_EQ(fake::take_log(), (Log{"wait", "record (captured)", "wait (captured)",
                                     "launch (captured)", "launch (captured)", "launch (captured)",
                                     "record (captured)", "wait (captured)"}));
    fake::capture(nullptr);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    EXPECT_EQ(fake::take_log(), (Log{"record", "wait", "launch a graph", "record"}));
}

TEST_F(Streams, ACaptureEndsWhateverFails) {
    ASSERT_TRUE(enqueue(&caller).ok());
    fake::take_log();
    fake::capture(&caller);
    out[0].address = static_cast<std::byte*>(out[0].address) + 4; // has to be copied
    EXPECT_FALSE(enqueue(&caller).ok());
    EXPECT_EQ(execution->error(),
              "the run copies an input or output, for which memory is needed: run once with these "
              "addresses outside of the capture, or give addresses that are multiples of 16, and "
              "outputs apart from inputs");
    EXPECT_EQ(fake::take_log(), (Log{"wait", "record (captured)", "wait (captured)",
                                     "record (captured)", "wait (captured)"}));
    fake::capture(nullptr);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    fake::capture(&caller);
    EXPECT_TRUE(enqueue(&caller).ok()) << execution->error();
}

TEST_F(Streams, TheEventForInputsIsRecordedBehindTheLastReader) {
    int event = 0;
    execution->change([&](RunSettings& changed) { changed.inputs_event = &event; });
    ASSERT_TRUE(enqueue().ok()) << execution->error();
    EXPECT_EQ(fake::take_log(), (Log{"record", "wait", "launch", "record the caller's", "launch",
                                     "launch", "record", "wait"}));
    ASSERT_TRUE(enqueue().ok());
    fake::take_log();
    ASSERT_TRUE(enqueue().ok()); // of a graph it is the end
    EXPECT_EQ(fake::take_log(),
              (Log{"record", "wait", "launch a graph", "record the caller's", "record", "wait"}));
    execution->change([&](RunSettings& changed) { changed.inputs_event = nullptr; });
    ASSERT_TRUE(enqueue().ok());
    EXPECT_EQ(fake::take_log(), (Log{"record", "wait", "launch a graph", "record", "wait"}));
}

struct Timer : StepTimer {
    void step(const StepInfo&, double ms) noexcept override {
        ++steps;
        EXPECT_DOUBLE_EQ(ms, 0.25); // the fake's time between any two events
    }
    void run(double ms) noexcept override { whole = ms; }
    int steps = 0;
    double whole = 0;
};

TEST_F(Streams, TimesThatAreAskedForLaterMakeNoRunWait) {
    Timer timer;
    execution->change([&](RunSettings& changed) {
        changed.timer = &timer;
        changed.times_later = true;
    });
    EXPECT_FALSE(execution->report_times()); // nothing has run
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    EXPECT_EQ(fake::take_log(),
              (Log{"mark", "launch", "mark", "launch", "mark", "launch", "mark", "record"}));
    EXPECT_EQ(timer.steps, 0);
    EXPECT_TRUE(execution->report_times());
    EXPECT_EQ(timer.steps, 3);
    EXPECT_DOUBLE_EQ(timer.whole, 0.75);
    fake::take_log();
    fake::capture(&caller);
    ASSERT_TRUE(enqueue(&caller).ok()) << execution->error();
    Log log = fake::take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), "mark in a graph (captured)"), 4);
    EXPECT_EQ(std::count(log.begin(), log.end(), "launch (captured)"), 3);
    fake::capture(nullptr);
    EXPECT_TRUE(execution->report_times());
    execution->change([&](RunSettings& changed) {
        changed.timer = &timer;
        changed.times_later = false;
    });
    fake::capture(&caller);
    EXPECT_FALSE(enqueue(&caller).ok());
    EXPECT_EQ(execution->error(),
              "the run cannot be captured, since it waits for the times of layers: take the "
              "profiler away, or let times be reported later");
}

TEST_F(Streams, APartOfTheCacheIsKeptForActivations) {
    int64_t most = execution->most_cache_bytes();
    ASSERT_GT(most, 1024);
    execution->change([&](RunSettings& changed) { changed.cache_limit = 256; });
    ASSERT_TRUE(enqueue().ok()) << execution->error();
    auto arena = execution->memory_use().activations;
    ASSERT_GT(arena, 256);
    EXPECT_EQ(fake::set_aside(), 256U);
    std::string kept =
        str("keep ", arena, " bytes, hits ", static_cast<float>(256 / static_cast<double>(arena)));
    Log log = fake::take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), kept), 1) << log.front();
    ASSERT_TRUE(enqueue().ok());
    ASSERT_TRUE(enqueue().ok());
    log = fake::take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), kept), 0); // it is still so
    in[0].shape = {64, 32};
    ASSERT_TRUE(enqueue().ok()) << execution->error(); // the arena has grown
    log = fake::take_log();
    EXPECT_EQ(std::count_if(log.begin(), log.end(),
                            [](const std::string& s) { return s.starts_with("keep "); }),
              1);
    auto other =
        backend->compile(std::make_shared<const Graph>(three_steps()), {})->create_execution();
    other->change([&](RunSettings& changed) { changed.cache_limit = 1000; });
    std::vector<Binding> small = {{in[0].address, {4, 32}}};
    ASSERT_TRUE(other->enqueue(small, out, nullptr, {}).ok()) << other->error();
    EXPECT_EQ(fake::set_aside(), 1256U);
    other.reset();
    EXPECT_EQ(fake::set_aside(), 256U);
    fake::take_log();
    execution->change([&](RunSettings& changed) { changed.cache_limit = 0; });
    EXPECT_EQ(fake::take_log(), (Log{"keep 0 bytes, hits 0"}));
    EXPECT_EQ(fake::set_aside(), 0U);
    try {
        execution->change([&](RunSettings& changed) { changed.cache_limit = most + 1; });
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.message(), str(most + 1, " bytes of cache cannot be kept, at most ", most,
                                   " can on this device"));
    }
}

TEST_F(Streams, TheCallersDeviceStaysCurrent) {
    const cuda::Driver& d = fake::fake_driver();
    EXPECT_EQ(cuda::current_device(d), 0);
    fake::set_current(2);
    EXPECT_EQ(cuda::current_device(d), 2);
    auto third = fake::make_gpu(1);
    auto there = cuda::make_backend(*third, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    auto e = there->compile(std::make_shared<const Graph>(three_steps()), o)->create_execution();
    EXPECT_EQ(cuda::current_device(d), 2);
    for (int run = 0; run < 3; ++run) { // alternating: each works in its own context
        ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
        EXPECT_EQ(cuda::current_device(d), 2);
        ASSERT_TRUE(enqueue().ok()) << execution->error();
        EXPECT_EQ(cuda::current_device(d), 2);
    }
    e.reset();
    EXPECT_EQ(cuda::current_device(d), 2);
    fake::set_current(-1); // a thread without one gets the used one
    ASSERT_TRUE(enqueue().ok());
    EXPECT_EQ(cuda::current_device(d), 0);
    there.reset();
}

} // namespace
} // namespace ingot::test
