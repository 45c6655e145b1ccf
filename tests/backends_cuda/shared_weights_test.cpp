// SPDX-License-Identifier: Apache-2.0
// Slabs of constants that executables of one GPU share.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device_weights.h"
#include "backends/device_memory.h"
#include "backends_cuda/fake_driver.h"
#include "backends_cuda/slow_gpu.h"
#include "base/interrupt.h"
#include "ops/ops.h"
#include "plan/copy.h"
#include "plan/memory_source.h"
#include "run/plugin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace ingot::test {
namespace {

using cuda::SharedSlabs;
using plan::StoredConstant;
using Constants = std::vector<StoredConstant>;

/// Bytes that are made once, in memory of their own at each call.
Tensor copy_of_random(int64_t bytes, uint64_t seed) {
    static std::mutex mutex;
    static std::map<std::pair<int64_t, uint64_t>, Tensor> made;
    std::scoped_lock lock(mutex);
    auto [it, fresh] = made.try_emplace({bytes, seed});
    if (fresh) {
        it->second = random_bytes(bytes, seed);
    }
    return it->second.clone();
}

/// Some of them in another order than on the host.
Constants constants_of(uint64_t seed) {
    Constants all;
    for (int64_t bytes : {1, 1000, (4 << 20) + 1, 7, 9 << 20, 4 << 20, 12345}) {
        all.emplace_back(copy_of_random(bytes, ++seed));
    }
    Tensor bytes = copy_of_random(int64_t{2001} * 1053 * 2, ++seed);
    Tensor matrix =
        Tensor::wrap(DType::F16, {2001, 1053}, bytes.bytes(), std::make_shared<Tensor>(bytes));
    plan::Operand whole{DType::F16, 0, plan::dense(matrix.shape())};
    all.emplace_back(matrix, whole, plan::Order{1, 0});
    Tensor parts[] = {copy_of_random(3001, ++seed), copy_of_random(2 << 20, ++seed)};
    all.emplace_back(Tensor::joined({parts[0], parts[1]}, 0));
    all.emplace_back(Tensor::lazy(DType::U8, {70001}, [part = parts[1]](ThreadPool&) {
        return Tensor::wrap(DType::U8, {70001}, part.bytes().first(70001),
                            std::make_shared<Tensor>(part));
    }));
    return all;
}

int64_t bytes_of(const Constants& all) {
    return std::accumulate(all.begin(), all.end(), int64_t{0}, [](int64_t n, const auto& c) {
        return n + static_cast<int64_t>(c.size());
    });
}

/// The weights of one session.
struct Session {
    Session(cuda::Gpu& gpu, std::shared_ptr<SharedSlabs> slabs, Constants all)
        : constants(std::move(all)), memory(gpu, 0), weights(gpu, memory, std::move(slabs)),
          stream(gpu.create_stream()) {}
    void start() { weights.start(constants); }
    void check() {
        std::vector<std::byte> expected;
        for (const StoredConstant& c : constants) {
            expected.resize(c.size());
            c.read(0, expected, ThreadPool::shared());
            EXPECT_EQ(std::memcmp(weights.find(c, *stream), expected.data(), c.size()), 0)
                << c.size();
        }
    }
    std::byte* place(size_t i) { return weights.find(constants[i], *stream); }
    Constants constants;
    cuda::Memory memory;
    cuda::Weights weights;
    std::unique_ptr<cuda::Stream> stream;
};

class SharedWeights : public testing::Test {
protected:
    /// A session of the model with this number.
    std::unique_ptr<Session> begun(uint64_t seed) {
        auto s = std::make_unique<Session>(gpu, slabs, constants_of(seed));
        s->start();
        return s;
    }
    std::unique_ptr<Session> session(uint64_t seed) {
        auto s = begun(seed);
        s->check();
        return s;
    }
    SlowGpu gpu;
    std::shared_ptr<SharedSlabs> slabs = std::make_shared<SharedSlabs>();
    const int64_t bytes = bytes_of(constants_of(0));
};

TEST_F(SharedWeights, FourSessionsOfOneModelHoldThemOnce) {
    std::vector<std::unique_ptr<Session>> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(session(1));
        EXPECT_EQ(gpu.allocations(), 1U);
        EXPECT_LT(gpu.used(), bytes + (int64_t{4} << 10));
        EXPECT_EQ(gpu.written(), bytes) << "later sessions write nothing";
        EXPECT_EQ(all.back()->weights.bytes(), static_cast<size_t>(bytes));
        EXPECT_EQ(all.back()->place(7), all.front()->place(7));
    }
    auto other = session(2);
    EXPECT_EQ(gpu.allocations(), 2U);
    EXPECT_EQ(gpu.written(), 2 * bytes);
}

TEST_F(SharedWeights, GoWithTheirLastSessionInAnyOrder) {
    std::vector<size_t> order = {0, 1, 2};
    do {
        std::vector<std::unique_ptr<Session>> all;
        for (int i = 0; i < 3; ++i) {
            all.push_back(session(1));
        }
        for (size_t i : order) {
            EXPECT_EQ(gpu.allocations(), 1U);
            all[i].reset();
            for (auto& s : all) {
                if (s != nullptr) {
                    s->check();
                }
            }
        }
        EXPECT_EQ(gpu.allocations(), 0U);
    } while (std::next_permutation(order.begin(), order.end()));
}

/// One byte of one constant differs, at the first or last place that there is.
TEST_F(SharedWeights, OneOtherByteIsEnoughForMemoryOfItsOwn) {
    auto first = session(1);
    for (size_t constant : {size_t{0}, size_t{4}, size_t{7}}) {
        for (bool last : {false, true}) {
            Constants all = constants_of(1);
            StoredConstant& c = all[constant];
            Tensor changed = c.source().clone();
            std::span<std::byte> b = changed.mutable_bytes();
            (last ? b.back() : b.front()) ^= std::byte{1};
            c = c.is_gathered() ? StoredConstant(changed, c.view(), c.order())
                                : StoredConstant(changed);
            int64_t before = gpu.written();
            Session s(gpu, slabs, std::move(all));
            s.start();
            s.check();
            EXPECT_EQ(gpu.allocations(), 2U);
            EXPECT_EQ(gpu.written() - before, bytes);
            Session again(gpu, slabs, s.constants); // finds the second slab behind the first
            again.start();
            again.check();
            EXPECT_EQ(again.place(3), s.place(3));
            EXPECT_EQ(gpu.allocations(), 2U);
            EXPECT_EQ(gpu.written() - before, bytes);
        }
    }
    first->check();
}

/// Constants that come together lie together: those of another time are shared by themselves.
TEST_F(SharedWeights, EachSlabIsSharedByItself) {
    auto first = session(1);
    Constants late = {StoredConstant(random_bytes(5000, 77))};
    first->weights.start(late);
    auto second = session(2);
    int64_t before = gpu.used();
    Constants equal = {StoredConstant(random_bytes(5000, 77))};
    second->weights.start(equal);
    EXPECT_EQ(second->weights.find(equal[0], *second->stream),
              first->weights.find(late[0], *first->stream));
    EXPECT_EQ(gpu.used(), before);
}

TEST_F(SharedWeights, WaitForThoseThatAreOnTheirWay) {
    gpu.close();
    auto first = begun(1);
    auto second = begun(1); // does not wait
    EXPECT_TRUE(second->weights.has(second->constants[3]));
    EXPECT_EQ(gpu.written(), 0);
    gpu.open();
    second->check();
    first->check();
    EXPECT_EQ(gpu.written(), bytes);
    EXPECT_EQ(gpu.allocations(), 1U);
}

TEST_F(SharedWeights, AStopRequestEndsTheWaitForAnother) {
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    gpu.close();
    auto first = begun(1);
    auto second = begun(1);
    request_interrupt();
    EXPECT_THROW(second->place(4), Error);
    clear_interrupt();
    gpu.open();
    second->check();
    EXPECT_EQ(gpu.written(), bytes);
}

/// The first session ends, or fails, before its weights are there.
TEST_F(SharedWeights, AreCopiedAgainWhereTheFirstSessionDoesNotBringThem) {
    for (bool fails : {false, true}) {
        gpu.close();
        auto first = begun(1);
        auto second = begun(1);
        std::thread opener([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            if (fails) {
                gpu.fail_from(0);
            }
            gpu.open();
        });
        if (fails) {
            EXPECT_THROW(first->place(4), Error);
            gpu.fail_from(-1);
        } else {
            first.reset();
        }
        opener.join();
        second->check();
        auto third = session(1);
        EXPECT_EQ(third->place(5), second->place(5));
    }
    EXPECT_EQ(gpu.allocations(), 0U);
}

TEST_F(SharedWeights, EndsWhileItWaitsForAnother) {
    gpu.close();
    auto first = begun(1);
    begun(1).reset(); // while nothing moves
    gpu.open();
    first->check();
    EXPECT_EQ(gpu.allocations(), 1U);
}

TEST_F(SharedWeights, WithoutMemoryForOthersNothingIsLost) {
    auto first = session(1);
    gpu.memory = gpu.used() + bytes / 2;
    auto second = begun(2); // as large, and other values
    try {
        second->place(4);
        FAIL() << "there is no room for it";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    }
    EXPECT_EQ(second->weights.bytes(), 0U);
    EXPECT_FALSE(second->weights.has(second->constants[0]));
    first->check();
    first.reset();
    second->start();
    second->check();
    EXPECT_EQ(gpu.allocations(), 1U);
}

TEST_F(SharedWeights, ADeviceThatDoesNotAnswerIsAnError) {
    auto first = session(1);
    gpu.reads_fail = true;
    auto second = begun(1);
    try {
        second->place(4);
        FAIL() << "nothing was compared";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Device);
        EXPECT_STREQ(e.what(), "the link back is down");
    }
    EXPECT_FALSE(second->weights.has(second->constants[0]));
    gpu.reads_fail = false;
    second->start();
    second->check();
    EXPECT_EQ(second->place(2), first->place(2));
}

TEST_F(SharedWeights, SessionsOfManyThreadsHaveTheirOwnValues) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            for (uint64_t turn = 0; turn < 6; ++turn) {
                auto s = begun((i + turn) % 3);
                if ((i + turn) % 4 != 0) { // else it ends at once
                    s->check();
                }
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    EXPECT_EQ(gpu.allocations(), 0U);
}

TEST(SharedWeightsOfADriver, AreComparedInTheOrderOfTheirKernels) {
    fake::reset();
    {
        auto gpu = fake::make_gpu();
        auto slabs = std::make_shared<SharedSlabs>();
        Session first(*gpu, slabs, constants_of(1));
        Session second(*gpu, slabs, constants_of(1));
        Session other(*gpu, slabs, constants_of(2));
        for (Session* s : {&first, &second, &other}) {
            s->start();
            s->check();
        }
        EXPECT_EQ(first.place(7), second.place(7));
        EXPECT_NE(first.place(7), other.place(7));
    }
    EXPECT_EQ(fake::alive(), "");
}

/// Each call that a later session makes of the driver fails once; then it works.
TEST(SharedWeightsOfADriver, LosesNothingWhenACallFails) {
    for (uint64_t seed : {uint64_t{1}, uint64_t{2}}) { // of the first session's values, and others
        int failed = 0;
        for (int64_t n = 1; n > 0; ++n) {
            fake::reset();
            {
                auto gpu = fake::make_gpu();
                auto slabs = std::make_shared<SharedSlabs>();
                auto some = [](uint64_t values) {
                    return Constants{StoredConstant(copy_of_random(70000, values)),
                                     StoredConstant(copy_of_random(3, values))};
                };
                Session first(*gpu, slabs, some(1));
                first.start();
                first.check();
                Session second(*gpu, slabs, some(seed));
                int64_t before = fake::calls();
                fake::fail_call(n, cuda::out_of_memory, false);
                try {
                    second.start();
                    second.check();
                } catch (const Error& e) {
                    EXPECT_EQ(e.code(), ErrorCode::OutOfMemory) << e.what();
                    ++failed;
                }
                bool is_last = fake::calls() - before < n;
                fake::fail_call(0, 0, false);
                second.start();
                second.check();
                first.check();
                EXPECT_EQ(first.place(0) == second.place(0), seed == 1) << n;
                n = is_last ? -1 : n;
            }
            ASSERT_EQ(fake::alive(), "") << n;
        }
        EXPECT_GT(failed, 2);
    }
}

/// A product by weights of 2 MiB, made anew at each call.
std::shared_ptr<const Graph> product(uint64_t seed) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[8,1024]"));
    Tensor bytes = random_bytes(int64_t{1024} * 512 * 4, seed);
    Tensor w =
        Tensor::wrap(DType::F32, {1024, 512}, bytes.bytes(), std::make_shared<Tensor>(bytes));
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    return std::make_shared<const Graph>(std::move(g));
}

/// Memory of an application.
struct Lent : MemorySource {
    explicit Lent(TimedGpu& g) : gpu(g) {}
    std::byte* allocate(int64_t bytes) noexcept override { return gpu.allocate(bytes); }
    void release(std::byte* memory) noexcept override { gpu.release(memory); }
    TimedGpu& gpu;
};

TEST(SharedWeightsOfGraphs, AreThoseOfTheGpuAlone) {
    constexpr int64_t weights = int64_t{2} << 20;
    SlowGpu gpu;
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions plain;
    plain.of<CudaOptions>().runtime_cache = "";
    CompileOptions limited = plain;
    limited.of<CudaOptions>().memory_limit = 100 << 20;
    CompileOptions lent = plain;
    lent.memory = std::make_shared<Lent>(gpu);
    CompileOptions streamed = plain;
    streamed.of<CudaOptions>().weight_budget = 50 << 20; // all of them stay
    struct Case {
        const char* what;
        const CompileOptions& options;
        uint64_t seed;
        int64_t copies; // that come
    } cases[] = {{"the first", plain, 1, 1},
                 {"the same", plain, 1, 0},
                 {"other values", plain, 2, 1},
                 {"memory of an application", lent, 1, 1},
                 {"a limit of its own", limited, 1, 1},
                 {"a budget", streamed, 1, 0}};
    std::vector<std::unique_ptr<Execution>> kept;
    std::vector<std::shared_ptr<const Executable>> executables;
    for (const Case& c : cases) {
        int64_t before = gpu.used();
        executables.push_back(backend->compile(product(c.seed), c.options));
        kept.push_back(executables.back()->create_execution());
        std::vector<Tensor> out(1);
        Status s = kept.back()->run(std::vector<Tensor>{Tensor::zeros(DType::F32, {8, 1024})}, out);
        ASSERT_TRUE(s.ok()) << kept.back()->error();
        EXPECT_EQ((gpu.used() - before) / weights, c.copies) << c.what;
        EXPECT_GE(executables.back()->packed_bytes(), static_cast<size_t>(weights)) << c.what;
    }
}

} // namespace
} // namespace ingot::test
