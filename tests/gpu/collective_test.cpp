// SPDX-License-Identifier: Apache-2.0
// Collectives on CUDA devices, two or more, by the real NCCL: INGOT_NCCL names it, else the loader
// finds libnccl.so.2. INGOT_TEST_GPU=1 asks for them.
#include "backends/backends.h"
#include "backends/cuda/driver/driver.h"
#include "gpu/collectives.h"
#include "gpu/engines.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace ingot::test {
namespace {

class TwoGpus : public testing::Test {
protected:
    void SetUp() override {
        if (!on_device()) {
            GTEST_SKIP() << "SKIPPED: no device is asked for (INGOT_TEST_GPU=1)";
        }
        std::string why;
        driver = cuda::find_driver(why);
        ASSERT_NE(driver, nullptr) << why;
        for (int i = 0; i < 8; ++i) {
            if (const Backend* b = cuda_backend(i, why)) {
                backends.push_back(b);
                devices.push_back(i);
            }
        }
        if (backends.size() < 2) {
            GTEST_SKIP() << "SKIPPED: collectives need two GPUs, here is " << backends.size();
        }
        const char* chosen = std::getenv("INGOT_NCCL");
        try {
            communicators = std::make_unique<Communicators>(
                chosen == nullptr ? "libnccl.so.2" : chosen, devices);
        } catch (const Error& e) {
            ASSERT_NE(e.code(), ErrorCode::Device) << e.what();
            GTEST_SKIP() << "SKIPPED: there is no NCCL, name it in INGOT_NCCL: " << e.what();
        }
    }

    const cuda::Driver* driver = nullptr;
    std::vector<const Backend*> backends;
    std::vector<int> devices;
    std::unique_ptr<Communicators> communicators;
};

TEST_F(TwoGpus, EveryOperationReductionAndType) {
    auto n = static_cast<int64_t>(backends.size());
    EXPECT_EQ(wrong_exchanges(backends, *communicators, {n * 3, 37}), "");
}

TEST_F(TwoGpus, RunBetweenKernelsAndAreRepeated) {
    EXPECT_EQ(wrong_repetitions(backends, *communicators, 40), "");
}

/// The ranks in another order: NCCL splits the communicator.
TEST_F(TwoGpus, GroupsOfRanks) {
    size_t n = backends.size();
    Collective c{"all_gather", "", static_cast<int64_t>(n), {}, -1};
    std::vector<Tensor> in;
    for (size_t r = n; r-- > 0;) {
        c.group.push_back(static_cast<int64_t>(r));
        in.push_back(rank_data(r, DType::F32, {4, 3}));
    }
    each_rank(n, [&](size_t r) {
        size_t at = n - 1 - r;
        auto e = execution_of(exchange_graph(c, in[at].type()), *backends[r]);
        e->change([&](RunSettings& changed) { changed.communicator = (*communicators)[r]; });
        for (int run = 0; run < 3; ++run) {
            Tensor got = run_once(*e, {in[at]})[0];
            std::string wrong = differs(got, expected_exchange(c, at, 0, in));
            require(wrong.empty(), ErrorCode::Internal, wrong);
        }
    });
}

/// y = (x + 1 summed over ranks) * 2, as a part of graphs of the caller's, with other data each
/// time they are launched.
TEST_F(TwoGpus, CapturedByTheCaller) {
    size_t n = backends.size();
    constexpr int64_t count = 1 << 16;
    constexpr size_t bytes = count * sizeof(float);
    each_rank(n, [&](size_t r) {
        const cuda::Driver& d = *driver;
        auto call = [](int result, const char* what) {
            require(result == 0, ErrorCode::Device, what, " gives ", result);
        };
        cuda::CUdevice device = 0;
        cuda::CUcontext context = nullptr;
        call(d.device_get(&device, devices[r]), "cuDeviceGet");
        call(d.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
        call(d.set_current(context), "cuCtxSetCurrent");
        require(current_cuda_device() == devices[r], ErrorCode::Internal, "another GPU");
        cuda::CUstream stream = nullptr;
        call(d.stream_create(&stream, cuda::stream_non_blocking, 0), "cuStreamCreate");
        const Backend& b = *backends[r];
        Graph g;
        Value x = g.add_input("x", {DType::F32, {Dim(count)}});
        Collective c{"all_reduce", "sum", static_cast<int64_t>(n), {}, -1};
        g.add_output("y", ops::mul(g, ops::collective(g, c, ops::add(g, x, 1.0)), 2.0));
        auto e = execution_of(std::move(g), b);
        e->change([&](RunSettings& changed) { changed.communicator = (*communicators)[r]; });
        std::byte* in = b.allocate(bytes);
        std::byte* out = b.allocate(bytes);
        std::vector<Binding> inputs = {{in, {count}}};
        std::vector<Binding> outputs = {{out, {}}};
        auto enqueue = [&] {
            Status s = e->enqueue(inputs, outputs, stream, {});
            require(s.ok(), s.code(), e->error());
        };
        auto check = [&](int round, const std::function<void()>& launch) {
            std::vector<float> data(count, static_cast<float>(round * 10 + static_cast<int>(r)));
            b.write(in, data.data(), bytes);
            launch();
            b.read(data.data(), out, bytes, stream);
            auto ranks = static_cast<double>(n);
            double want = 2 * (ranks * (round * 10 + 1) + ranks * (ranks - 1) / 2);
            auto wrong = std::find_if(data.begin(), data.end(),
                                      [&](float v) { return static_cast<double>(v) != want; });
            require(wrong == data.end(), ErrorCode::Internal, "round ", round, ": expected ", want);
        };
        check(1, enqueue);
        cuda::CUgraph graph = nullptr;
        cuda::CUgraphExec executable = nullptr;
        call(d.begin_capture(stream, cuda::capture_thread_local), "cuStreamBeginCapture");
        enqueue();
        call(d.end_capture(stream, &graph), "cuStreamEndCapture");
        call(d.graph_instantiate(&executable, graph, 0), "cuGraphInstantiate");
        for (int round = 2; round < 20; ++round) {
            check(round, [&] { call(d.graph_launch(executable, stream), "cuGraphLaunch"); });
        }
        call(d.stream_synchronize(stream), "cuStreamSynchronize");
        call(d.graph_exec_destroy(executable), "cuGraphExecDestroy");
        call(d.graph_destroy(graph), "cuGraphDestroy");
        b.release(in);
        b.release(out);
        e = nullptr;
        call(d.stream_destroy(stream), "cuStreamDestroy");
    });
}

TEST_F(TwoGpus, CommunicatorsOfAnotherGpuAreRefused) {
    auto e = execution_of(
        exchange_graph({"all_reduce", "sum", static_cast<int64_t>(backends.size()), {}, -1},
                       parse_type("f32[4]")),
        *backends[0]);
    try {
        e->change([&](RunSettings& changed) { changed.communicator = (*communicators)[1]; });
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "the communicator is of GPU 1, the engine runs on GPU 0");
    }
}

/// The time of an all-reduce between kernels: reported, not judged.
TEST_F(TwoGpus, TimeOfAnAllReduce) {
    size_t n = backends.size();
    each_rank(n, [&](size_t r) {
        constexpr int64_t count = 4 << 20;
        Graph g;
        Value x = g.add_input("x", {DType::F16, {Dim(count)}});
        Collective c{"all_reduce", "sum", static_cast<int64_t>(n), {}, -1};
        g.add_output("y", ops::collective(g, c, ops::add(g, x, 1.0)));
        auto e = execution_of(std::move(g), *backends[r]);
        e->change([&](RunSettings& changed) { changed.communicator = (*communicators)[r]; });
        const Backend& b = *backends[r];
        std::byte* in = b.allocate(count * 2);
        std::byte* out = b.allocate(count * 2);
        std::vector<Binding> inputs = {{in, {count}}};
        std::vector<Binding> outputs = {{out, {}}};
        constexpr int runs = 50;
        auto run = [&](int times) {
            for (int i = 0; i < times; ++i) {
                Status s = e->enqueue(inputs, outputs, nullptr, {});
                require(s.ok(), s.code(), e->error());
            }
            require(e->wait().ok(), ErrorCode::Device, e->error());
        };
        run(5);
        auto start = std::chrono::steady_clock::now();
        run(runs);
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        if (r == 0) {
            report("all_reduce",
                   str("ranks=", n, " mib=", count * 2 >> 20, " us=", took.count() / runs));
        }
        b.release(in);
        b.release(out);
    });
}

} // namespace
} // namespace ingot::test
