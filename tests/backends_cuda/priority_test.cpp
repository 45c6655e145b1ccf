// SPDX-License-Identifier: Apache-2.0
// Priority of work: that of a caller's stream for its runs, the options' for other work, and for
// compiling.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "backends_cuda/timed_gpu.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>

namespace ingot::test {
namespace {

using Work = std::vector<std::string>;

/// Three launches: two softmaxes with a transpose between, then one more.
Graph three_steps() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,32]"));
    Value s = ops::softmax(g, x, 1);
    Value t = ops::softmax(g, ops::permute(g, s, {1, 0}), 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, t, {1, 0}), 1));
    return g;
}

Work launches(const char* priority, int64_t n = 3, const std::string& kind = "launch at ") {
    return {static_cast<size_t>(n), kind + priority};
}

class Priorities : public testing::Test {
protected:
    void SetUp() override {
        fake::reset();
        fake::set_current(-1);
        fake::set_priorities(2,
                             -5); // no GPU has a least one below 0; then low and normal are equal
        fake::set_priority_of(&hurried, -3);
        gpu = fake::make_gpu();
        backend = cuda::make_backend(*gpu, 1);
        constexpr int64_t bytes = 4 * 32 * 4;
        in = {{gpu->allocate(bytes), {4, 32}}};
        out = {{gpu->allocate(bytes), {}}};
    }
    ~Priorities() override { fake::capture(nullptr); }

    std::unique_ptr<Execution> make(RunPriority priority, bool records = false) {
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        o.of<CudaOptions>().record_graphs = records;
        o.of<CudaOptions>().priority = priority;
        auto e =
            backend->compile(std::make_shared<const Graph>(three_steps()), o)->create_execution();
        fake::take_work();
        return e;
    }
    /// The work of a run on that stream.
    Work enqueue(Execution& e, void* stream = nullptr) {
        EXPECT_TRUE(e.enqueue(in, out, stream, {}).ok()) << e.error();
        return fake::take_work();
    }

    std::unique_ptr<cuda::Gpu> gpu;
    std::unique_ptr<Backend> backend;
    std::vector<Binding> in;
    std::vector<Binding> out;
    int plain = 0; // their addresses stand for streams of the caller's
    int hurried = 0;
};

TEST_F(Priorities, RunsAreAsUrgentAsTheOptionsSay) {
    const std::pair<RunPriority, const char*> all[] = {
        {RunPriority::Low, "2"}, {RunPriority::Normal, "0"}, {RunPriority::High, "-5"}};
    for (auto [priority, number] : all) {
        auto e = make(priority);
        EXPECT_EQ(enqueue(*e), launches(number));
        std::vector<Tensor> inputs = {Tensor::zeros(DType::F32, {4, 32})};
        std::vector<Tensor> results(1);
        ASSERT_TRUE(e->run(inputs, results).ok()) << e->error();
        Work work = fake::take_work();
        EXPECT_EQ(std::erase(work, str("upload at ", number)), 1U) << "the input";
        EXPECT_EQ(work, launches(number));
    }
}

TEST_F(Priorities, ADeviceWithoutPrioritiesRunsAllTheSame) {
    fake::set_priorities(0, 0);
    for (auto priority : {RunPriority::Low, RunPriority::Normal, RunPriority::High}) {
        EXPECT_EQ(enqueue(*make(priority)), launches("0"));
    }
}

TEST_F(Priorities, WorkOfACallersStreamIsAsUrgentAsTheStream) {
    for (auto own : {RunPriority::Low, RunPriority::Normal, RunPriority::High}) {
        auto e = make(own);
        EXPECT_EQ(enqueue(*e, &hurried), launches("-3"));
        EXPECT_EQ(enqueue(*e, &plain), launches("0"));
        EXPECT_EQ(enqueue(*e, &hurried), launches("-3"));
        fake::set_priority_of(&plain, 2);
        EXPECT_EQ(enqueue(*e, &plain), launches("2"));
        fake::set_priority_of(&plain, 0);
    }
}

TEST_F(Priorities, DefaultStreamsHaveNone) {
    auto e = make(RunPriority::High);
    for (uintptr_t handle : {0, 1, 2}) { // the default one, the process's, the thread's
        fake::set_priority_of(reinterpret_cast<void*>(handle), -1);
        EXPECT_EQ(enqueue(*e, reinterpret_cast<void*>(handle)), launches("-5"));
    }
}

// A graph runs at the priority of the launching stream, unless it was instantiated with its nodes'
// priorities: one recording serves streams of all priorities.
TEST_F(Priorities, AReplayedGraphIsAsUrgentAsTheStreamOfItsRun) {
    auto e = make(RunPriority::Normal, true);
    EXPECT_EQ(enqueue(*e, &hurried), launches("-3"));
    Work recorded = launches("0", 3, "recorded launch at ");
    recorded.emplace_back("launch a graph at -3");
    EXPECT_EQ(enqueue(*e, &hurried), recorded);
    EXPECT_EQ(enqueue(*e, &plain), (Work{"launch a graph at 0"}));
    EXPECT_EQ(enqueue(*e, &hurried), (Work{"launch a graph at -3"}));
    EXPECT_EQ(enqueue(*e), (Work{"launch a graph at 0"}));
    EXPECT_EQ(fake::graph_flags(), 0U);
}

TEST_F(Priorities, NodesOfTheCallersGraphHaveThePriorityOfItsStream) {
    auto e = make(RunPriority::Low);
    enqueue(*e);
    enqueue(*e);
    fake::take_log();
    fake::capture(&hurried);
    EXPECT_EQ(enqueue(*e, &hurried), launches("-3"));
    EXPECT_EQ(fake::take_log(), (Work{"record", "wait", // before the capture, behind the run before
                                      "record (captured)", "wait (captured)", "launch (captured)",
                                      "launch (captured)", "launch (captured)", "record (captured)",
                                      "wait (captured)"}));
    fake::capture(nullptr);
    EXPECT_EQ(enqueue(*e), launches("2"));
}

TEST_F(Priorities, RunsOfSeveralPrioritiesStayInOrder) {
    auto e = make(RunPriority::Normal);
    enqueue(*e);
    fake::take_log();
    enqueue(*e);
    EXPECT_EQ(fake::take_log(), // as before: nothing moves
              (Work{"record", "wait", "launch", "launch", "launch", "record", "wait"}));
    enqueue(*e, &hurried); // waits for the run before
    EXPECT_EQ(fake::take_log(), (Work{"record", "wait", "launch", "launch", "launch", "record"}));
    enqueue(*e);
    EXPECT_EQ(fake::take_log(),
              (Work{"wait", "record", "wait", "launch", "launch", "launch", "record", "wait"}));
    EXPECT_EQ(fake::unordered(), 0);
}

TEST_F(Priorities, TheCacheIsKeptForEveryPriority) {
    auto e = make(RunPriority::Normal);
    e->change([&](RunSettings& changed) { changed.cache_limit = 256; });
    enqueue(*e);
    auto kept = [] {
        Work log = fake::take_log();
        return std::count_if(log.begin(), log.end(), [](const std::string& s) {
            return s.starts_with("keep ") && !s.starts_with("keep 0 ");
        });
    };
    kept();
    enqueue(*e, &hurried);
    EXPECT_EQ(kept(), 1);
    e->change([&](RunSettings& changed) { changed.cache_limit = 0; });
    fake::take_log();
    enqueue(*e); // back on a stream that still kept it
    Work log = fake::take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), "keep 0 bytes, hits 0"), 1);
    EXPECT_EQ(fake::set_aside(), 0U);
}

TEST_F(Priorities, StreamsOfAllPrioritiesAreGivenBack) {
    auto streams = [] {
        std::string text = ", " + fake::alive(); // "2 buffers, 1 stream"
        size_t end = text.find(" stream");
        size_t begin = text.rfind(", ", end) + 2;
        return end == std::string::npos ? "0" : text.substr(begin, end - begin);
    };
    EXPECT_EQ(streams(), "0");
    auto e = make(RunPriority::Low);
    EXPECT_EQ(streams(), "1");
    enqueue(*e, &hurried);
    enqueue(*e, &plain);
    EXPECT_EQ(streams(), "1"); // the caller's are used
    e->change([&](RunSettings& changed) { changed.cache_limit = 256; });
    enqueue(*e, &hurried);
    enqueue(*e, &plain);
    enqueue(*e, &hurried);
    EXPECT_EQ(streams(), "3"); // which keep the cache
    e.reset();
    EXPECT_EQ(streams(), "0");
}

TEST_F(Priorities, WeightsComeAtThePriorityOfTheRun) {
    Graph g;
    constexpr int64_t width = 64;
    Value y = g.add_input("x", parse_type("f32[8,64]"));
    for (int i = 0; i < 10; ++i) {
        Tensor w = Tensor::zeros(DType::F32, {width, width});
        w.set_f64(i, 1);
        y = ops::maximum(g, ops::matmul(g, y, ops::constant(g, w)), 0.0);
    }
    g.add_output("y", y);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().weight_budget = 8 * width * width * 4;
    o.of<CudaOptions>().record_graphs = false;
    o.of<CudaOptions>().priority = RunPriority::High;
    auto e = backend->compile(std::make_shared<const Graph>(std::move(g)), o)->create_execution();
    in = {{gpu->allocate(8 * width * 4), {8, width}}};
    out = {{gpu->allocate(8 * width * 4), {}}};
    enqueue(*e); // keeps what it can
    for (auto [stream, number] : {std::pair<void*, const char*>{nullptr, "-5"},
                                  {&hurried, "-3"},
                                  {&plain, "0"},
                                  {nullptr, "-5"}}) {
        Work work = enqueue(*e, stream);
        auto uploads = std::count(work.begin(), work.end(), str("upload at ", number));
        EXPECT_GE(uploads, 2) << "at " << number;
        EXPECT_GE(std::count(work.begin(), work.end(), str("launch at ", number)), 10);
        std::erase_if(
            work, [end = str(" at ", number)](const std::string& s) { return s.ends_with(end); });
        EXPECT_EQ(work, Work()) << "at another priority than " << number;
    }
}

/// Waits for its kernels.
void run_once(Execution& e) {
    std::vector<Tensor> in = {Tensor::zeros(DType::F32, {4, 32})};
    std::vector<Tensor> out(1);
    EXPECT_TRUE(e.run(in, out).ok()) << e.error();
}

/// The nice values of threads that compiled at that priority.
std::set<int> niceness(RunPriority priority) {
    TimedGpu gpu;
    std::mutex mutex;
    std::set<int> seen;
    gpu.compile_ms = [&](const std::string&) {
        std::scoped_lock lock(mutex);
        seen.insert(::getpriority(PRIO_PROCESS, 0)); // of this thread, on Linux
        return 0.0;
    };
    auto backend = cuda::make_backend(gpu, 2);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().priority = priority;
    auto e = backend->compile(std::make_shared<const Graph>(three_steps()), o)->create_execution();
    run_once(*e);
    EXPECT_GT(gpu.compiled(), 0);
    return seen;
}

TEST(PriorityOfCompiling, ThreadsGiveWayForLowRunsOnly) {
    int own = ::getpriority(PRIO_PROCESS, 0);
    constexpr int nicest = 19;
    EXPECT_EQ(niceness(RunPriority::Low), std::set<int>{nicest});
    EXPECT_EQ(niceness(RunPriority::Normal), std::set<int>{own});
    EXPECT_EQ(niceness(RunPriority::High), std::set<int>{own});
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own) << "the caller's thread stays as it was";
}

// A thread cannot raise its priority again, so each priority has threads of its own.
TEST(PriorityOfCompiling, LowRunsDoNotSlowDownOthersOfTheBackend) {
    TimedGpu gpu;
    std::mutex mutex;
    std::vector<int> seen;
    gpu.compile_ms = [&](const std::string&) {
        std::scoped_lock lock(mutex);
        seen.push_back(::getpriority(PRIO_PROCESS, 0));
        return 0.0;
    };
    auto backend = cuda::make_backend(gpu, 1);
    int own = ::getpriority(PRIO_PROCESS, 0);
    std::vector<std::unique_ptr<Execution>> all;
    for (auto [priority, nice] : {std::pair(RunPriority::Low, 19), {RunPriority::Normal, own}}) {
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        o.of<CudaOptions>().priority = priority;
        all.push_back(
            backend->compile(std::make_shared<const Graph>(three_steps()), o)->create_execution());
        seen.clear();
        run_once(*all.back());
        std::scoped_lock lock(mutex);
        ASSERT_FALSE(seen.empty());
        EXPECT_EQ(std::set<int>(seen.begin(), seen.end()), std::set<int>{nice});
    }
}

} // namespace
} // namespace ingot::test
