// SPDX-License-Identifier: Apache-2.0
// Collectives on emulated GPUs, each rank a thread, by a libnccl of the tests
// (programs/fake_nccl.cpp).
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/nccl.h"
#include "backends_cuda/fake_driver.h"
#include "emulator/emulated_gpu.h"
#include "error_of.h"
#include "gpu/collectives.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ingot::test {
namespace {

using test::error_of;

/// Emulated GPUs with a communicator.
struct World {
    explicit World(size_t ranks) {
        ::setenv("INGOT_NCCL", FAKE_NCCL, 1); // before anything opens one
        std::vector<int> devices;
        for (size_t i = 0; i < ranks; ++i) {
            gpus.push_back(std::make_unique<emulator::EmulatedGpu>(90));
            owned.push_back(cuda::make_backend(*gpus.back()));
            backends.push_back(owned.back().get());
            devices.push_back(static_cast<int>(i));
        }
        communicators = std::make_unique<Communicators>(FAKE_NCCL, devices);
    }
    template <class F>
    static F* function(const char* name) {
        std::string problem;
        return reinterpret_cast<F*>(SharedLibrary::open(FAKE_NCCL, problem).symbol(name));
    }
    static int live() { return function<int()>("fake_nccl_live")(); }
    static void fail(int result) { function<void(int)>("fake_nccl_fail")(result); }

    std::vector<std::unique_ptr<emulator::EmulatedGpu>> gpus;
    std::vector<std::unique_ptr<Backend>> owned;
    std::vector<const Backend*> backends;
    std::unique_ptr<Communicators> communicators;
};

Tensor four() {
    return rank_data(0, DType::F32, {4});
}

TEST(Collectives, EveryOperationReductionAndType) {
    for (size_t ranks : {size_t{2}, size_t{3}}) {
        World w(ranks);
        EXPECT_EQ(wrong_exchanges(w.backends, *w.communicators, {6, 5}), "") << ranks << " ranks";
    }
}

TEST(Collectives, RunBetweenKernelsAndAreRepeated) {
    World w(2);
    EXPECT_EQ(wrong_repetitions(w.backends, *w.communicators, 6), "");
}

/// Ranks 0 and 2, and 3 and 1, in that order: the groups give the order of parts.
TEST(Collectives, GroupsOfRanks) {
    World w(4);
    const std::vector<std::vector<int64_t>> groups = {{0, 2}, {3, 1}, {0, 2}, {3, 1}};
    for (const char* op : {"all_gather", "all_reduce", "broadcast", "gather", "all_to_all"}) {
        std::vector<Tensor> in;
        for (size_t r = 0; r < 4; ++r) {
            in.push_back(rank_data(r, DType::F32, {4, 3}));
        }
        each_rank(4, [&](size_t r) {
            const std::vector<int64_t>& group = groups[r];
            Collective c{op, "", 2, group, -1};
            c.reduction = c.reduces() ? "sum" : "";
            c.root = c.has_root() ? group[1] : -1;
            auto e = execution_of(exchange_graph(c, in[r].type()), *w.backends[r]);
            e->change([&](RunSettings& changed) { changed.communicator = (*w.communicators)[r]; });
            auto at = static_cast<size_t>(c.position(static_cast<int64_t>(r)));
            std::vector<Tensor> members = {in[static_cast<size_t>(group[0])],
                                           in[static_cast<size_t>(group[1])]};
            for (int run = 0; run < 2; ++run) {
                Tensor got = run_once(*e, {in[r]})[0];
                std::string wrong = differs(got, expected_exchange(c, at, 1, members));
                require(wrong.empty(), ErrorCode::Internal, op, ": ", wrong);
            }
            EXPECT_GT(World::live(), 4); // the group's own
        });
    }
    EXPECT_EQ(World::live(), 4) << "communicators of groups are given back";
}

TEST(Collectives, SayWhatIsWrong) {
    World w(2);
    Collective sum;
    auto e = execution_of(exchange_graph(sum, four().type()), *w.backends[0]);
    EXPECT_EQ(error_of([&] { run_once(*e, {four()}); }),
              "node 'swap' (collective): all_reduce between 2 ranks: no communicator is set; give "
              "the ncclComm_t of this rank to IExecutionContext::setCommunicator()");
    Communicators three(FAKE_NCCL, {0, 1, 2});
    EXPECT_EQ(error_of([&] {
                  e->change([&](RunSettings& changed) { changed.communicator = three[0]; });
              }),
              "node 'swap' exchanges data between 2 ranks, the communicator has 3");
    Collective group{"all_reduce", "sum", 2, {0, 2}, -1};
    auto part = execution_of(exchange_graph(group, four().type()), *w.backends[0]);
    EXPECT_EQ(error_of([&] {
                  part->change([&](RunSettings& changed) { changed.communicator = three[1]; });
              }),
              "node 'swap' exchanges data between ranks [0,2], and this is rank 1: each rank needs "
              "an engine with its own group");
    EXPECT_EQ(error_of([&] {
                  part->change(
                      [&](RunSettings& changed) { changed.communicator = (*w.communicators)[0]; });
              }),
              "node 'swap' exchanges data between ranks [0,2], the communicator has 2");
    e->change([&](RunSettings& changed) { changed.communicator = (*w.communicators)[0]; });
    constexpr int system_error = 2;
    World::fail(system_error);
    EXPECT_EQ(error_of([&] { run_once(*e, {four()}); }),
              "node 'swap' (collective): ncclAllReduce: unhandled system error (what the fake "
              "says)");
    e->change([&](RunSettings& changed) { changed.communicator = nullptr; });
    EXPECT_NE(error_of([&] { run_once(*e, {four()}); }).find("no communicator is set"),
              std::string::npos);
}

/// Nonblocking communicators report completion later.
TEST(Collectives, OfCommunicatorsThatDoNotBlock) {
    World w(2);
    constexpr int in_progress = 7;
    World::fail(in_progress);
    EXPECT_EQ(wrong_repetitions(w.backends, *w.communicators, 2), "");
}

TEST(Collectives, ACaptureMakesNoCommunicatorOfAGroup) {
    World w(3);
    cuda::Communicator c((*w.communicators)[2]);
    Collective pair{"all_reduce", "sum", 2, {2, 1}, -1};
    std::byte memory[8];
    EXPECT_EQ(error_of([&] {
                  c.enqueue({pair, DType::F32, memory, memory, 2, 2, true}, nullptr);
              }),
              "ranks [2,1] have no communicator of their own yet, and a capture cannot make one: "
              "enqueue a run outside of a capture first");
}

TEST(Collectives, GroupsThatOverlapAreFound) {
    World w(3);
    const std::vector<std::vector<int64_t>> groups = {{0, 1}, {0, 1}, {0, 2}};
    std::vector<std::string> errors(3);
    each_rank(3, [&](size_t r) {
        Collective sum{"all_reduce", "sum", 2, groups[r], -1};
        auto e = execution_of(exchange_graph(sum, four().type()), *w.backends[r]);
        e->change([&](RunSettings& changed) { changed.communicator = (*w.communicators)[r]; });
        errors[r] = error_of([&] { run_once(*e, {four()}); });
    });
    for (size_t r = 0; r < 3; ++r) {
        EXPECT_EQ(errors[r], str("node 'swap' (collective): the group of ranks ", groups[r],
                                 " has 3 ranks: other ranks have groups that overlap with it"));
    }
}

TEST(Collectives, SizesThatDoNotDivide) {
    World w(2);
    Collective cut{"reduce_scatter", "sum", 2, {}, -1};
    auto e = execution_of(exchange_graph(cut, parse_type("f32[N,2]")), *w.backends[0]);
    e->change([&](RunSettings& changed) { changed.communicator = (*w.communicators)[0]; });
    EXPECT_EQ(
        error_of([&] {
            e->prepare(std::vector<Shape>{{3, 2}});
        }),
        "node 'swap' (collective): reduce_scatter cuts axis 0 of [3,2] into 2 parts, which it "
        "does not divide into");
}

TEST(Collectives, AreOfOneGpu) {
    World w(2);
    fake::reset();
    {
        auto gpu = fake::make_gpu(1);
        auto backend = cuda::make_backend(*gpu);
        auto e = execution_of(exchange_graph({}, four().type()), *backend);
        EXPECT_EQ(error_of([&] {
                      e->change([&](RunSettings& changed) {
                          changed.communicator = (*w.communicators)[0];
                      });
                  }),
                  "the communicator is of GPU 0, the engine runs on GPU 1");
        e->change([&](RunSettings& changed) { changed.communicator = (*w.communicators)[1]; });
    }
    EXPECT_EQ(fake::alive(), "");
}

TEST(Collectives, AreRefusedOnTheCpu) {
    EXPECT_EQ(
        error_of([] { execution_of(exchange_graph({}, four().type()), cpu_backend()); }),
        "node 'swap' (collective): no kernel of the cpu backend runs it: it exchanges data "
        "between 2 GPUs by NCCL; run it on GPUs, each rank in a thread or process of its own");
}

/// In a process of its own, because the library is searched once.
TEST(CollectivesDeathTest, NcclIsMissing) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    auto print = [] {
        ::setenv("INGOT_NCCL", "/no/libnccl.so.2", 1);
        emulator::EmulatedGpu gpu(90);
        auto backend = cuda::make_backend(gpu);
        auto e = execution_of(exchange_graph({}, four().type()), *backend);
        int any = 0;
        std::string text = error_of(
            [&] { e->change([&](RunSettings& changed) { changed.communicator = &any; }); });
        std::fputs(text.c_str(), stderr);
        std::_Exit(0);
    };
    EXPECT_EXIT(print(), testing::ExitedWithCode(0),
                "data is exchanged between GPUs by NCCL 2, and libnccl.so.2 was not found \\(tried "
                "/no/libnccl.so.2\\): install it \\(package libnccl2, or nvidia-nccl-cu13 or -cu12 "
                "for Python\\), or name in INGOT_NCCL the one that made the communicator");
}

} // namespace
} // namespace ingot::test
