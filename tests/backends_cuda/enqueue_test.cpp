// SPDX-License-Identifier: Apache-2.0
// Runs on device memory: against run(), with outputs over inputs, without alignment, with
// data-dependent sizes, and errors found by kernels.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace ingot::test {
namespace {

/// Memory that a backend's executions run on.
class Place {
public:
    explicit Place(bool on_gpu) {
        if (on_gpu) {
            gpu_ = std::make_unique<emulator::EmulatedGpu>(90);
            own_ = cuda::make_backend(*gpu_);
        }
    }
    ~Place() {
        for (std::byte* p : blocks_) {
            gpu_ ? gpu_->release(p) : std::free(p);
        }
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    std::unique_ptr<Execution> execution(Graph g, std::shared_ptr<MemorySource> source = {}) const {
        CompileOptions o;
        o.memory = std::move(source);
        o.of<CudaOptions>().runtime_cache = "";
        const Backend& b = own_ ? *own_ : cpu_backend();
        return b.compile(std::make_shared<const Graph>(std::move(g)), o)->create_execution();
    }
    void* allocate(int64_t bytes) {
        auto size = static_cast<size_t>((bytes + 511) / 256 * 256);
        blocks_.push_back(gpu_ ? gpu_->allocate(static_cast<int64_t>(size))
                               : static_cast<std::byte*>(std::aligned_alloc(256, size)));
        std::memset(blocks_.back(), 0xCB, size); // the emulated device's memory is the process's
        return blocks_.back();
    }

private:
    std::unique_ptr<emulator::EmulatedGpu> gpu_;
    std::unique_ptr<Backend> own_;
    std::vector<std::byte*> blocks_;
};

class Enqueue : public testing::TestWithParam<bool> {
protected:
    Place place{GetParam()};

    Binding input(const std::vector<float>& values, Shape shape, size_t shift = 0) {
        auto bytes = values.size() * sizeof(float);
        auto* p = static_cast<std::byte*>(place.allocate(static_cast<int64_t>(bytes + shift)));
        std::memcpy(p + shift, values.data(), bytes);
        return {p + shift, std::move(shape)};
    }
    static std::vector<float> values_at(const Binding& b) {
        std::vector<float> v(static_cast<size_t>(count_of(b.shape)));
        std::memcpy(v.data(), b.address, v.size() * sizeof(float));
        return v;
    }
};

/// y = x + 1, z = x transposed.
Graph two_results() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,2]"));
    g.add_output("y", ops::add(g, x, 1.0));
    g.add_output("z", ops::permute(g, x, {1, 0}));
    return g;
}

TEST_P(Enqueue, ShapesAddressesAndRepeats) {
    auto e = place.execution(two_results());
    for (int run = 0; run < 4; ++run) {
        bool large = run == 2;
        std::vector<Binding> in = {large ? input({1, 2, 3, 4, 5, 6}, {3, 2})
                                         : input({1, 2, 3, 4}, {2, 2})};
        std::vector<Binding> out = {{place.allocate(24), {}}, {place.allocate(24), {}}};
        ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
        EXPECT_EQ(out[1].shape, (large ? Shape{2, 3} : Shape{2, 2}));
        EXPECT_EQ(values_at(out[0]), large ? (std::vector<float>{2, 3, 4, 5, 6, 7})
                                           : (std::vector<float>{2, 3, 4, 5}));
        EXPECT_EQ(values_at(out[1]), large ? (std::vector<float>{1, 3, 5, 2, 4, 6})
                                           : (std::vector<float>{1, 3, 2, 4}));
    }
}

TEST_P(Enqueue, AnOutputWhereAnInputLies) {
    auto e = place.execution(two_results());
    std::vector<Binding> in = {input({1, 2, 3, 4}, {2, 2})};
    std::vector<Binding> out = {{in[0].address, {}}, {place.allocate(16), {}}};
    for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
        float r = static_cast<float>(run);
        EXPECT_EQ(values_at(out[0]), (std::vector<float>{r + 2, r + 3, r + 4, r + 5}));
        EXPECT_EQ(values_at(out[1]), (std::vector<float>{r + 1, r + 3, r + 2, r + 4}));
    }
}

TEST_P(Enqueue, AddressesWithoutAlignment) {
    auto e = place.execution(two_results());
    std::vector<Binding> in = {input({1, 2, 3, 4}, {2, 2}, 4)};
    std::vector<Binding> out = {{static_cast<std::byte*>(place.allocate(24)) + 4, {}},
                                {place.allocate(16), {}}};
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_EQ(values_at(out[0]), (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(Enqueue, SizesThatDataDecides) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[5]"));
    g.add_output("where",
                 ops::cast(g, g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {x}), DType::F32));
    g.add_output("twice", ops::add(g, x, x));
    auto e = place.execution(std::move(g));
    std::map<size_t, int64_t> asked;
    OutputMemory memory = [&](size_t i, const Shape&, int64_t bytes) {
        asked[i] = bytes;
        return place.allocate(bytes);
    };
    for (int run = 0; run < 3; ++run) {
        std::vector<Binding> in = {run == 1 ? input({0, 0, 0, 0, 0}, {5})
                                            : input({0, 3, 0, 4, 5}, {5})};
        std::vector<Binding> out(2);
        ASSERT_TRUE(e->enqueue(in, out, nullptr, memory).ok()) << e->error();
        EXPECT_EQ(values_at(out[0]),
                  run == 1 ? std::vector<float>{} : (std::vector<float>{1, 3, 4}));
        EXPECT_EQ(asked[0], run == 1 ? 0 : 12);
        EXPECT_EQ(asked[1], 20);
    }
    std::vector<Binding> in = {input({0, 3, 0, 4, 5}, {5})};
    std::vector<Binding> out = {{place.allocate(64), {}}, {place.allocate(20), {}}};
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_EQ(e->error(), "the size of output 'where' depends on data: give an allocator for it");
}

TEST_P(Enqueue, WhatIsMissing) {
    auto e = place.execution(two_results());
    std::vector<Binding> in = {{nullptr, {2, 2}}};
    std::vector<Binding> out = {{place.allocate(16), {}}, {place.allocate(16), {}}};
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_EQ(e->error(), "input 'x' has no address");
    in[0] = input({1, 2, 3, 4}, {2, 2});
    out[1].address = nullptr;
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_EQ(e->error(), "output 'z' has no address");
    EXPECT_FALSE(e->enqueue(in, std::span(out).first(1), nullptr, {}).ok());
    EXPECT_EQ(e->error(), "got 1 inputs and 1 outputs, expected 1 and 2");
    // No state remains of it.
    out[1].address = place.allocate(16);
    EXPECT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
}

Graph two_of_five() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[5]"));
    Value i = g.add_input("i", parse_type("i64[2]"));
    g.add_output("y", ops::gather(g, x, i, 0));
    return g;
}

TEST(EnqueueOnAGpu, WhatKernelsFindIsReportedByALaterCall) {
    Place place(true);
    auto e = place.execution(two_of_five());
    std::vector<Binding> in = {{place.allocate(20), {5}}, {place.allocate(16), {2}}};
    std::vector<Binding> out = {{place.allocate(8), {}}};
    auto* index = static_cast<int64_t*>(in[1].address);
    index[0] = 4;
    index[1] = 9;
    EXPECT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    index[1] = 0;
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_NE(e->error().find("an index is outside its axis"), std::string::npos) << e->error();
    EXPECT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
}

/// Two softmaxes with a transpose between: needs memory for intermediate values.
Graph with_activations() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,32]"));
    Value s = ops::softmax(g, x, 1);
    Value t = ops::softmax(g, ops::permute(g, s, {1, 0}), 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, t, {1, 0}), 1));
    return g;
}

TEST_P(Enqueue, ActivationsInMemoryOfTheCaller) {
    auto e = place.execution(with_activations());
    std::vector<float> x(4 * 32);
    for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i % 5);
    }
    std::vector<Binding> in = {input(x, {4, 32})};
    std::vector<Binding> out = {{place.allocate(512), {}}};
    std::vector<Shape> shapes = {{4, 32}};
    int64_t bytes = e->activation_bytes(shapes);
    EXPECT_GE(bytes, 512);
    EXPECT_EQ(e->memory_use().activations, 0); // nothing was allocated for it
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_EQ(e->memory_use().activations, bytes);
    ASSERT_TRUE(e->wait().ok()) << e->error();
    std::vector<float> expected = values_at(out[0]);
    auto* lent = static_cast<std::byte*>(place.allocate(bytes + 256));
    e->change([&](RunSettings& changed) { changed.activations = {lent, bytes}; });
    std::memset(out[0].address, 0, 512);
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_EQ(values_at(out[0]), expected);
    EXPECT_NE(std::count(lent, lent + bytes, std::byte{0xCB}), bytes); // it was used
    EXPECT_EQ(lent[bytes], std::byte{0xCB});
    e->change([&](RunSettings& changed) { changed.activations = {lent, bytes - 1}; });
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_EQ(e->error(),
              str("activations take ", bytes, " bytes, the memory given for them has ", bytes - 1));
    e->change([&](RunSettings& changed) { changed.activations = {}; });
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_EQ(values_at(out[0]), expected);
}

/// Counts allocations, and takes them from the place under test.
struct Source : MemorySource {
    explicit Source(Place& p) : place(p) {}
    std::byte* allocate(int64_t bytes) noexcept override {
        ++live;
        return gives ? static_cast<std::byte*>(place.allocate(bytes)) : nullptr;
    }
    void release(std::byte*) noexcept override { --live; }
    Place& place;
    bool gives = true;
    int live = 0;
};

TEST_P(Enqueue, MemoryOfASource) {
    auto source = std::make_shared<Source>(place);
    std::vector<Binding> in = {input(std::vector<float>(128, 1.0F), {4, 32})};
    std::vector<Binding> out = {{place.allocate(512), {}}};
    {
        auto e = place.execution(with_activations(), source);
        ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
        EXPECT_GT(source->live, 0);
        EXPECT_FLOAT_EQ(values_at(out[0])[7], 1.0F / 32);
    }
    EXPECT_EQ(source->live, 0);
    source->gives = false;
    auto e = place.execution(with_activations(), source);
    EXPECT_FALSE(e->enqueue(in, out, nullptr, {}).ok());
    EXPECT_NE(e->error().find("which the allocator does not give"), std::string::npos)
        << e->error();
}

/// Records when work waits for the default stream.
class WatchedStream final : public cuda::Stream, cuda::StreamOrder {
public:
    WatchedStream(std::unique_ptr<cuda::Stream> real, std::vector<std::string>& events)
        : real_(std::move(real)), events_(events) {
        set_parts({.order = this, .clock = real_->parts().clock});
    }
    void launch(const cuda::Function& f, const cuda::LaunchShape& shape,
                void* const* parameters) override {
        events_.emplace_back("launch");
        real_->launch(f, shape, parameters);
    }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        real_->copy(to, from, bytes);
    }
    void fill(std::byte* to, int byte, size_t bytes) override { real_->fill(to, byte, bytes); }
    void read(void* to, const std::byte* from, size_t bytes) override {
        real_->read(to, from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        real_->write(to, from, bytes);
    }
    void synchronize() override { real_->synchronize(); }

private:
    void* native() override { return nullptr; }
    void wait_for(void* other) override {
        if (other == nullptr) {
            events_.emplace_back("wait");
        }
    }
    void let_wait(void*) override {}
    void follow(cuda::Stream&) override {}
    bool is_captured(void*) override { return false; }
    void record(void*) override {}

    std::unique_ptr<cuda::Stream> real_;
    std::vector<std::string>& events_;
};

class WatchedGpu : public emulator::EmulatedGpu {
public:
    WatchedGpu() : EmulatedGpu(90) {}
    std::unique_ptr<cuda::Stream> create_stream() override {
        return std::make_unique<WatchedStream>(EmulatedGpu::create_stream(), events);
    }
    std::vector<std::string> events;
};

/// Memory of a GPU, as if allocated in the order of the default stream.
struct GpuSource : MemorySource {
    explicit GpuSource(cuda::Gpu& g) : gpu(g) {}
    std::byte* allocate(int64_t bytes) noexcept override { return gpu.allocate(bytes); }
    void release(std::byte* memory) noexcept override { gpu.release(memory); }
    cuda::Gpu& gpu;
};

// Memory that an allocator orders on the default stream is not used earlier.
TEST(EnqueueOnAGpu, LentMemoryIsUsedBehindTheDefaultStream) {
    WatchedGpu gpu;
    auto backend = cuda::make_backend(gpu);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.memory = std::make_shared<GpuSource>(gpu);
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,32]"));
    Value s = ops::softmax(g, x, 1);
    Value t = ops::softmax(g, ops::permute(g, s, {1, 0}), 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, t, {1, 0}), 1));
    auto e = backend->compile(std::make_shared<const Graph>(std::move(g)), o)->create_execution();
    Tensor ones = Tensor::zeros(DType::F32, {4, 32});
    std::vector<Tensor> out(1);
    ASSERT_TRUE(e->run(std::span(&ones, 1), out).ok()) << e->error();
    EXPECT_FLOAT_EQ(static_cast<float>(out[0].get_f64(3)), 1.0F / 32);
    ASSERT_GE(gpu.events.size(), 2U);
    EXPECT_EQ(gpu.events.front(), "wait");
    EXPECT_EQ(gpu.events.back(), "launch");
}

TEST(EnqueueOnAGpu, WaitingTellsWhatKernelsFound) {
    Place place(true);
    auto e = place.execution(two_of_five());
    std::vector<Binding> in = {{place.allocate(20), {5}}, {place.allocate(16), {2}}};
    std::vector<Binding> out = {{place.allocate(8), {}}};
    auto* index = static_cast<int64_t*>(in[1].address);
    index[0] = 0;
    index[1] = 9;
    EXPECT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_FALSE(e->wait().ok());
    EXPECT_NE(e->error().find("an index is outside its axis"), std::string::npos) << e->error();
    EXPECT_TRUE(e->wait().ok());
}

INSTANTIATE_TEST_SUITE_P(Devices, Enqueue, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
