// SPDX-License-Identifier: Apache-2.0
// Constants that threads copy to the device, and the work that goes on beside them.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device_weights.h"
#include "backends/cuda/run/run_traffic.h"
#include "backends/device_memory.h"
#include "backends_cuda/fake_driver.h"
#include "backends_cuda/slow_gpu.h"
#include "base/interrupt.h"
#include "engine/engine.h"
#include "ops/ops.h"
#include "plan/copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace ingot::test {
namespace {

using cuda::Memory;
using cuda::Weights;
using plan::StoredConstant;

/// Their sizes are no multiples of a piece, from a byte to several pieces.
std::vector<Tensor> many_constants(uint64_t seed) {
    std::vector<Tensor> all;
    for (int64_t bytes : {1, 1000, (4 << 20) + 1, (4 << 20) - 1, 30000001, 7, 17 << 20, 4 << 20}) {
        all.push_back(random_bytes(bytes, ++seed));
    }
    return all;
}

size_t sum_of(const std::vector<Tensor>& all) {
    size_t bytes = 0;
    for (const Tensor& t : all) {
        bytes += t.bytes().size();
    }
    return bytes;
}

struct Store {
    explicit Store(SlowGpu& gpu, int64_t limit = 0)
        : memory(gpu, limit), weights(gpu, memory), stream(gpu.create_stream()) {}
    bool holds(const Tensor& t) {
        return std::memcmp(weights.find(t, *stream), t.bytes().data(), t.bytes().size()) == 0;
    }
    template <class Constants>
    void start(const Constants& all) {
        weights.start({all.begin(), all.end()});
    }
    Memory memory;
    Weights weights;
    std::unique_ptr<cuda::Stream> stream;
};

TEST(WeightCopies, EveryByteArrivesByThreads) {
    SlowGpu gpu;
    Store store(gpu);
    std::vector<Tensor> all = many_constants(1);
    all.push_back(all[4]); // once more
    gpu.close();
    store.start(all);
    all.pop_back();
    EXPECT_EQ(store.weights.bytes(), sum_of(all));
    for (const Tensor& t : all) {
        EXPECT_TRUE(store.weights.has(t));
    }
    EXPECT_EQ(gpu.written(), 0) << "start() has waited for the copies";
    gpu.open();
    for (const Tensor& t : all) {
        EXPECT_TRUE(store.holds(t)) << t.bytes().size();
    }
    EXPECT_EQ(gpu.written(), static_cast<int64_t>(sum_of(all)));
    EXPECT_FALSE(gpu.writers().contains(std::this_thread::get_id()));
    store.start(all);
    EXPECT_EQ(gpu.written(), static_cast<int64_t>(sum_of(all))) << "they were there";
}

TEST(WeightCopies, FewBytesAreThereAtOnce) {
    SlowGpu gpu;
    Store store(gpu);
    std::vector<Tensor> all = {random_bytes(5000, 1), random_bytes(3, 2)};
    store.start(all);
    EXPECT_EQ(gpu.written(), 5003);
    EXPECT_EQ(gpu.writers(), std::set{std::this_thread::get_id()});
    EXPECT_TRUE(store.holds(all[0]) && store.holds(all[1]));
}

TEST(WeightCopies, WhatFailedIsCopiedWhenItIsAskedForAgain) {
    for (int64_t n = 0; n < 14; n += 3) {
        SlowGpu gpu;
        Store store(gpu);
        std::vector<Tensor> all = many_constants(2);
        gpu.fail_from(n);
        store.start(all);
        try {
            store.weights.find(all[0], *store.stream);
            FAIL() << "copy " << n << " failed, and nobody heard of it";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::Device);
            EXPECT_STREQ(e.what(), "the link is down");
        }
        EXPECT_EQ(store.weights.bytes(), 0U);
        EXPECT_FALSE(store.weights.has(all[5]));
        gpu.fail_from(-1);
        for (const Tensor& t : all) {
            EXPECT_TRUE(store.holds(t)) << t.bytes().size();
        }
        EXPECT_EQ(store.weights.bytes(), sum_of(all));
    }
}

TEST(WeightCopies, WithoutMemoryNothingIsThere) {
    SlowGpu gpu;
    Store store(gpu, 40 << 20);
    std::vector<Tensor> all = many_constants(3);
    try {
        store.start(all);
        FAIL() << "60 MB fit into 40 MiB";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
        EXPECT_STREQ(e.what(), "60410624 bytes of device memory are needed, and of the limit of "
                               "41943040 only 41943040 are left");
    }
    EXPECT_EQ(store.weights.bytes(), 0U);
    EXPECT_FALSE(store.weights.has(all[0]));
    EXPECT_EQ(gpu.written(), 0);
    EXPECT_EQ(gpu.used(), 0);
    EXPECT_TRUE(store.holds(all[1]));
}

/// Sessions of a model have their weights each: less than 1 % is lost at the ends of slabs.
TEST(WeightCopies, ConstantsFillTheirSlabs) {
    SlowGpu gpu;
    Store store(gpu);
    std::vector<Tensor> all;
    for (uint64_t i = 0; i < 40; ++i) { // of 3072 x 768 floats: three in 32 MiB
        all.push_back(random_bytes(9 << 20, i));
    }
    all.push_back(random_bytes(300 << 20, 40)); // more than a slab
    all.push_back(random_bytes(1000, 41));
    store.start(all);
    EXPECT_LT(gpu.used(), static_cast<int64_t>(sum_of(all)) + 4096);
    EXPECT_EQ(gpu.allocations(), 4U); // 28 constants and 12, the large one, the last one
    EXPECT_TRUE(store.holds(random_bytes(10, 42))); // comes late: a slab of 64 KiB
    EXPECT_LT(gpu.used(), static_cast<int64_t>(sum_of(all)) + (100 << 10));
    for (const Tensor& t : {all[0], all[39], all[40], all[41]}) {
        EXPECT_TRUE(store.holds(t));
    }
}

TEST(WeightCopies, TheirEndComesBeforeTheMemoryGoes) {
    SlowGpu gpu;
    std::vector<Tensor> all = many_constants(4);
    gpu.close();
    std::thread opener;
    {
        Store store(gpu);
        store.start(all);
        opener = std::thread([&gpu] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            gpu.open();
        });
    } // sanitizers see a write after this
    EXPECT_EQ(gpu.used(), 0);
    opener.join();
}

TEST(WeightCopies, AStopRequestEndsTheWaitAndNotTheCopies) {
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    SlowGpu gpu;
    Store store(gpu);
    std::vector<Tensor> all = many_constants(5);
    gpu.close();
    store.start(all);
    request_interrupt();
    EXPECT_THROW(store.weights.find(all[3], *store.stream), Error);
    clear_interrupt();
    EXPECT_TRUE(store.weights.has(all[3]));
    gpu.open();
    EXPECT_TRUE(store.holds(all[3]));
    EXPECT_EQ(gpu.written(), static_cast<int64_t>(sum_of(all)));
}

/// Constants of some tensors as kernels read them: matrices and filters in another order, a part of
/// one, and their tensors as they are.
std::vector<StoredConstant> many_orders() {
    std::vector<StoredConstant> all;
    auto tensor = [&all](DType type, Shape shape) {
        int64_t bytes = byte_size(type, count_of(shape));
        Tensor t = random_bytes(bytes, static_cast<uint64_t>(bytes));
        all.emplace_back(
            Tensor::wrap(type, std::move(shape), t.bytes(), std::make_shared<Tensor>(t)));
        return all.back().source();
    };
    using plan::dense;
    Tensor matrix = tensor(DType::F16, {3001, 2053});
    all.emplace_back(matrix, plan::Operand{DType::F16, 0, dense(matrix.shape())},
                     plan::Order{1, 0});
    plan::View part = plan::sliced(dense(matrix.shape()), {7, 64}, {2000, 1024}, Shape{1, 1});
    all.emplace_back(matrix, plan::Operand{DType::F16, 0, part}, plan::Order{1, 0});
    for (DType type : {DType::F32, DType::F16}) {
        Tensor filters = tensor(type, {257, 640, 3, 3});
        all.emplace_back(filters, plan::Operand{type, 0, dense(filters.shape())},
                         plan::channels_last(4));
    }
    Tensor wide = tensor(DType::F64, {3, 900000});
    all.emplace_back(wide, plan::Operand{DType::F64, 0, dense(wide.shape())}, plan::Order{1, 0});
    return all;
}

Tensor packed(const StoredConstant& c) {
    plan::PackCache packs;
    return c.is_gathered()
               ? plan::packed_constant(packs, c.view(), c.source().bytes().data(), c.order())
               : c.source();
}

bool holds(Store& store, const StoredConstant& c) {
    Tensor expected = packed(c);
    return std::memcmp(store.weights.find(c, *store.stream), expected.bytes().data(), c.size()) ==
           0;
}

TEST(WeightCopies, ConstantsArriveInTheOrderOfTheirKernels) {
    SlowGpu gpu;
    Store store(gpu);
    std::vector<StoredConstant> all = many_orders();
    int64_t bytes = 0;
    for (const StoredConstant& c : all) {
        bytes += static_cast<int64_t>(c.size());
    }
    store.start(all);
    EXPECT_EQ(store.weights.bytes(), static_cast<size_t>(bytes));
    for (const StoredConstant& c : all) {
        EXPECT_TRUE(store.weights.has(c));
        EXPECT_TRUE(holds(store, c)) << c.size();
    }
    EXPECT_EQ(gpu.written(), bytes);
    EXPECT_FALSE(gpu.writers().contains(std::this_thread::get_id()));
    // The same elements, seen by another view.
    const Tensor& matrix = all[0].source();
    plan::View turned = plan::permuted(plan::dense(matrix.shape()), std::vector<int64_t>{1, 0});
    StoredConstant again(matrix, {DType::F16, 0, turned}, {0, 1});
    EXPECT_EQ(store.weights.find(again, *store.stream), store.weights.find(all[1], *store.stream));
    EXPECT_EQ(gpu.written(), bytes);
}

TEST(WeightCopies, OneThatComesLateIsGatheredToo) {
    SlowGpu gpu;
    Store store(gpu);
    for (const StoredConstant& c : many_orders()) {
        EXPECT_FALSE(store.weights.has(c));
        EXPECT_TRUE(holds(store, c)) << c.size();
    }
    EXPECT_EQ(gpu.writers(), std::set{std::this_thread::get_id()});
}

TEST(WeightCopies, GatheredOnesArriveByTheDriver) {
    fake::reset();
    {
        auto gpu = fake::make_gpu();
        Memory memory(*gpu, 0);
        Weights weights(*gpu, memory);
        cuda::StreamedWeights streamed(*gpu, 1 << 20);
        std::unique_ptr<cuda::Stream> stream = gpu->create_stream();
        std::vector<StoredConstant> all = many_orders();
        StoredConstant late = all.back();
        all.pop_back();
        weights.start(all);
        all.push_back(late);
        for (const StoredConstant& c : all) {
            Tensor expected = packed(c);
            const std::byte* there = weights.find(c, *stream);
            EXPECT_EQ(std::memcmp(there, expected.bytes().data(), c.size()), 0) << c.size();
            EXPECT_FALSE(streamed.keeps(c));
            const std::byte* pinned = streamed.find(c);
            EXPECT_EQ(std::memcmp(pinned, expected.bytes().data(), c.size()), 0) << c.size();
            EXPECT_EQ(streamed.find(c), pinned);
        }
    }
    EXPECT_EQ(fake::alive(), "");
}

/// Waits until the runs of other tests are long ago.
void let_traffic_end(const cuda::Gpu& gpu) {
    while (cuda::RunTraffic::of(gpu).is_busy()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

/// Runs that begin on a GPU while it lives.
class Traffic {
public:
    explicit Traffic(const cuda::Gpu& gpu)
        : runner_([this, &traffic = cuda::RunTraffic::of(gpu)] {
              while (!stops_) {
                  traffic.note_run();
                  begun_ = true;
                  std::this_thread::yield();
              }
          }) {
        while (!begun_) {
            std::this_thread::yield();
        }
    }
    ~Traffic() {
        stops_ = true;
        runner_.join();
    }
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;

private:
    std::atomic<bool> stops_{false}, begun_{false};
    std::thread runner_;
};

TEST(WeightCopies, GiveWayToRuns) {
    for (bool busy : {false, true}) {
        SlowGpu gpu;
        Store store(gpu);
        std::vector<StoredConstant> all = many_orders();
        let_traffic_end(gpu);
        std::optional<Traffic> traffic;
        if (busy) {
            traffic.emplace(gpu);
        }
        store.start(all);
        for (const StoredConstant& c : all) {
            EXPECT_TRUE(holds(store, c)) << c.size();
        }
        if (busy) {
            EXPECT_LE(gpu.most_queued(), 1 << 20);
        } else {
            EXPECT_GT(gpu.most_queued(), 4 << 20) << "they have waited for nobody";
        }
    }
}

TEST(WeightCopies, GiveWayToRunsByTheDriver) {
    for (bool busy : {false, true}) {
        fake::reset();
        auto gpu = fake::make_gpu();
        let_traffic_end(*gpu);
        std::optional<Traffic> traffic;
        if (busy) {
            traffic.emplace(*gpu);
        }
        Memory memory(*gpu, 0);
        Weights weights(*gpu, memory);
        std::unique_ptr<cuda::Stream> stream = gpu->create_stream();
        Tensor constant = random_bytes(20 << 20, 1);
        fake::take_log();
        weights.start({constant});
        weights.find(constant, *stream);
        std::vector<std::string> log = fake::take_log();
        auto is_upload = [](const std::string& line) { return line.starts_with("upload"); };
        EXPECT_EQ(std::count_if(log.begin(), log.end(), is_upload), busy ? 20 : 5);
    }
}

/// A product whose weights are enough for a thread.
std::shared_ptr<const Engine> large_product() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[8,2048]"));
    Tensor w = Tensor::zeros(DType::F32, {2048, 2304});
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    return Engine::create(std::move(g), {}, {});
}

/// But not to one that waits for them.
TEST(WeightCopies, GiveWayToRunsOnStreamsOfCallers) {
    SlowGpu gpu;
    gpu.close();
    bool busy_before = false;
    gpu.compile_ms = [&](const std::string&) { // in the run
        busy_before = busy_before || cuda::RunTraffic::of(gpu).is_busy();
        gpu.open();
        return 0.0;
    };
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    Context context(large_product(), *backend, o);
    std::byte* x = gpu.allocate(8 * 2048 * 4);
    std::byte* y = gpu.allocate(8 * 2304 * 4);
    Binding in = {x, {8, 2048}};
    Binding out = {y, {8, 2304}};
    let_traffic_end(gpu);
    context.enqueue({&in, 1}, {&out, 1}, nullptr);
    EXPECT_GT(gpu.compiled(), 0);
    EXPECT_FALSE(busy_before);
    EXPECT_TRUE(cuda::RunTraffic::of(gpu).is_busy());
    gpu.release(x);
    gpu.release(y);
}

TEST(WeightCopies, KernelsAreCompiledMeanwhile) {
    SlowGpu gpu;
    gpu.close();
    // Copies wait for the compiler: a compiler that waits for copies never begins.
    gpu.compile_ms = [&gpu](const std::string&) {
        gpu.open();
        return 0.0;
    };
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    Context context(large_product(), *backend, o);
    std::vector<Tensor> in = {Tensor::zeros(DType::F32, {8, 2048})};
    EXPECT_EQ(context.run(in).size(), 1U);
    EXPECT_GT(gpu.compiled(), 0);
    EXPECT_GE(gpu.written(), 2048 * 2304 * 4);
}

/// Products by some weights of 2 MiB, of rows whose number must be a multiple of `step`.
Graph picky_products(int64_t step, int weights) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[n,m]"));
    Dim m = g.type(x).dims[1];
    Value y = ops::reshape(g, x, {g.type(x).dims[0] * floor_div(m, Dim(step)), Dim(step)});
    Value column = ops::slice(g, y, 1, 0, 1);
    Value all = column;
    for (int i = 0; i < weights; ++i) {
        Tensor w = random_bytes(int64_t{2} << 20, static_cast<uint64_t>(i));
        Tensor f = Tensor::zeros(DType::F32, {1, 1 << 19});
        std::memcpy(f.mutable_bytes().data(), w.bytes().data(), w.bytes().size());
        Value product = ops::matmul(g, column, ops::constant(g, f));
        all = ops::add(g, all, ops::reduce_sum(g, product, {1}, true));
    }
    g.add_output("y", all);
    return g;
}

TEST(WeightCopies, BeginAtTheLoadOfANetworkThatNeedsEvenSizes) {
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    for (int64_t step : {1, 16, 48}) { // 64 is no multiple of 48
        auto graph = std::make_shared<const Graph>(picky_products(step, 3));
        auto held = upload_weights(*backend, graph, o);
        EXPECT_EQ(gpu.used() >= 6 << 20, step != 48) << step;
    }
}

/// The load's plan, which has no kernels, finds the orders that the first run's plan asks for.
TEST(WeightCopies, TheHostHoldsNoneInTheOrderOfAKernel) {
    SlowGpu gpu;
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    Tensor matrix = Tensor::zeros(DType::F16, {256, 512});
    Tensor filters = Tensor::zeros(DType::F16, {64, 32, 3, 3});
    for (Tensor* t : {&matrix, &filters}) {
        for (int64_t i = 0; i < t->count(); ++i) {
            t->set_f64(i, static_cast<double>(i % 251));
        }
    }
    // Kernels for f16 read a product's second operand with its depth innermost, and channels last.
    Graph g;
    Value x = g.add_input("x", parse_type("f16[64,256]"));
    g.add_output("y", ops::matmul(g, x, ops::constant(g, matrix)));
    Value image = g.add_input("image", parse_type("f16[1,32,16,16]"));
    ops::Conv conv{{1, 1}, {1, 1}, {Dim(1), Dim(1)}, {Dim(1), Dim(1)}, 1, DType::F16};
    g.add_output("z", ops::conv(g, conv, image, ops::constant(g, filters)));
    auto graph = std::make_shared<const Graph>(std::move(g));
    std::vector<Shape> shapes = {{64, 256}, {1, 32, 16, 16}};
    std::string text = plan_text_ahead(graph, shapes, 90, o);
    EXPECT_NE(text.find("constant f16[512,256], 262144 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("constant f16[64,3,3,32], 36864 bytes"), std::string::npos) << text;
    Context context(Engine::create(Graph(*graph), {}, {}), *backend, o);
    EXPECT_EQ(context.executable().packed_bytes(), 262144U + 36864U); // on the device
    std::vector<Tensor> in = {Tensor::zeros(DType::F16, shapes[0]),
                              Tensor::zeros(DType::F16, shapes[1])};
    context.run(in);
    EXPECT_EQ(context.executable().packed_bytes(), 262144U + 36864U);
}

TEST(WeightCopies, BeginTogetherInAFirstRun) {
    std::set<size_t> allocations;
    for (int weights : {1, 3}) {
        TimedGpu gpu;
        auto backend = cuda::make_backend(gpu, 1);
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        Context context(Engine::create(picky_products(48, weights), {}, {}), *backend, o);
        std::vector<Tensor> in = {Tensor::zeros(DType::F32, {1, 96})};
        context.run(in);
        allocations.insert(gpu.allocations());
    }
    EXPECT_EQ(allocations.size(), 1U); // a slab for all
}

} // namespace
} // namespace ingot::test
