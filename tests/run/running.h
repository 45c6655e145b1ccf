// SPDX-License-Identifier: Apache-2.0
// A graph under a Runner on host memory, whose results are compared with the evaluator's.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/lower.h"
#include "backends/cpu/options.h"
#include "base/error.h"
#include "ops/evaluator.h"
#include "plan/memory_source.h"
#include "run/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace ingot::plan {

/// Host memory; counts plans and allocations.
class CountingDevice final : public Device, DeviceLaunches {
public:
    CountingDevice() : Device(true) {
        DeviceParts parts;
        parts.launches = this;
        set_parts(parts);
    }
    int plans = 0;
    int64_t allocations = 0;
    int64_t limit = int64_t{1} << 40;
    std::vector<void*> communicators; // for bodies, as segments without a recording find them

    std::byte* allocate(int64_t bytes) override {
        require(bytes <= limit, ErrorCode::OutOfMemory, "no ", bytes, " bytes");
        ++allocations;
        return static_cast<std::byte*>(::operator new (
            static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::align_val_t{64}));
    }
    void release(std::byte* memory) noexcept override {
        ::operator delete (memory, std::align_val_t{64});
    }
    void set_memory(std::shared_ptr<MemorySource>) override {}
    const std::byte* constant(const StoredConstant& c) override {
        return c.source().bytes().data();
    }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        std::memmove(to, from, bytes);
    }
    void fill(std::byte* to, int byte, size_t bytes) override { std::memset(to, byte, bytes); }
    void read(void* to, const std::byte* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void synchronize() override {}

private:
    void begin_plan() override { ++plans; }
    void join_steps(SegmentPlan&) override {}
    bool settle() override { return false; }
    bool replay(SegmentPlan&, const RunContext& c) override {
        communicators.push_back(c.bodies->communicator);
        return false;
    }
};

inline Tensor numbers(const Shape& shape, int64_t seed = 0) {
    Tensor t = Tensor::zeros(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>((i * 29 + seed * 13) % 41 - 20) / 16);
    }
    return t;
}

struct Running {
    Graph graph;
    CountingDevice device;
    std::shared_ptr<const Program> program;
    std::unique_ptr<Runner> runner;

    explicit Running(Graph g, CompileOptions options = {}) : graph(std::move(g)) {
        options.of<CpuOptions>().use_library = false;
        options.poison = true;
        program = make_program(std::make_shared<const Graph>(cpu::lower(graph, options)),
                               cpu::cpu_kernels(), std::make_shared<PackCache>(), options);
        runner = std::make_unique<Runner>(program, device, Symbols());
    }

    /// Runs, and compares all results with the evaluator's.
    void check(const std::vector<Tensor>& in, const RunWatch& watch = {}) {
        std::vector<Shape> shapes;
        std::vector<const std::byte*> inputs;
        for (const Tensor& t : in) {
            shapes.push_back(t.shape());
            inputs.push_back(t.bytes().data());
        }
        runner->prepare(shapes);
        std::vector<Tensor> want = evaluate(graph, in);
        std::vector<ResultSlot> results(want.size());
        std::vector<Tensor> given(want.size());
        for (size_t i = 0; i < want.size(); i += 2) { // every other one goes to the caller's memory
            if (std::optional<Shape> shape = runner->result_shape(i)) {
                given[i] = Tensor::zeros(want[i].dtype(), *shape);
                results[i].data = given[i].mutable_bytes().data();
            }
        }
        runner->run(inputs, results, watch);
        for (size_t i = 0; i < want.size(); ++i) {
            const Tensor& got = given[i].defined() ? given[i] : results[i].tensor;
            ASSERT_EQ(got.type(), want[i].type()) << i;
            for (int64_t k = 0; k < got.count(); ++k) {
                ASSERT_NEAR(got.get_f64(k), want[i].get_f64(k), 1e-5) << i << " at " << k;
            }
        }
    }
};

} // namespace ingot::plan
