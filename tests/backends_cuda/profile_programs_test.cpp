// SPDX-License-Identifier: Apache-2.0
// A dynamic engine's later shapes find their kernels compiled.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/profile_programs.h"
#include "backends_cuda/timed_gpu.h"
#include "emulator/emulated_gpu.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

namespace ingot::test {
namespace {

Profile profile_of(const Graph& g, const std::map<std::string, Interval>& sizes) {
    Profile p;
    for (Value v : g.inputs()) {
        ShapeRange r{g.value_name(v), {}, {}, {}};
        for (const Dim& d : g.type(v).dims) {
            Interval i = d.is_const() ? Interval{d.value(), d.value()}
                                      : sizes.at(std::string(d.symbol_name()));
            r.min.push_back(i.low);
            r.opt.push_back((i.low + i.high) / 2);
            r.max.push_back(i.high);
        }
        p.inputs.push_back(std::move(r));
    }
    return p;
}

/// Counts compilations.
class CountingGpu : public emulator::EmulatedGpu {
public:
    using EmulatedGpu::EmulatedGpu;
    std::string compile(const std::string& text) const override {
        ++compiled;
        return EmulatedGpu::compile(text);
    }
    mutable std::atomic<int> compiled{0};
};

class Shapes {
public:
    Shapes(const Graph& g, std::map<std::string, Interval> sizes)
        : graph_(g), sizes_(std::move(sizes)) {}
    std::vector<Shape> next() {
        Symbols symbols;
        for (const auto& [name, i] : sizes_) {
            auto span = static_cast<uint64_t>(i.high - i.low + 1);
            symbols[name] = i.low + static_cast<int64_t>(random_() % span);
        }
        std::vector<Shape> all;
        for (Value v : graph_.inputs()) {
            all.push_back(eval(graph_.type(v).dims, symbols));
        }
        return all;
    }

private:
    const Graph& graph_;
    std::map<std::string, Interval> sizes_;
    std::mt19937 random_{11};
};

std::vector<Tensor> random_inputs(const std::vector<Shape>& shapes) {
    std::mt19937 random(5);
    std::vector<Tensor> in;
    for (const Shape& s : shapes) {
        Tensor t = Tensor::empty(DType::F32, s);
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, static_cast<double>(random() % 2000) / 1000 - 1);
        }
        in.push_back(std::move(t));
    }
    return in;
}

TEST(ProfilePrograms, AHundredShapesCompileNothing) {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[N,C]"));
    Value b = g.add_input("b", parse_type("f32[C]"));
    Value y = ops::softmax(g, ops::exp(g, ops::add(g, a, b)), 1);
    g.add_output("y", ops::reverse(g, ops::permute(g, y, {1, 0}), 0));
    std::map<std::string, Interval> sizes{{"N", {1, 12}}, {"C", {1, 40}}};
    CountingGpu gpu(90);
    {
        auto backend = cuda::make_backend(gpu, 2);
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        o.of<CudaOptions>().specialise = Specialise::None;
        o.profiles = {profile_of(g, sizes)};
        auto execution = backend->compile(std::make_shared<const Graph>(g), o)->create_execution();
        Shapes shapes(g, sizes);
        int first = 0;
        std::set<std::vector<Shape>> seen;
        for (int i = 0; i < 100; ++i) {
            std::vector<Shape> now = shapes.next();
            seen.insert(now);
            std::vector<Tensor> in = random_inputs(now);
            std::vector<Tensor> out(1);
            ASSERT_TRUE(execution->run(in, out).ok()) << execution->error();
            first = i == 0 ? gpu.compiled.load() : first;
            Tensor expected = evaluate(g, in)[0];
            for (int64_t k = 0; k < expected.count(); ++k) {
                ASSERT_NEAR(out[0].get_f64(k), expected.get_f64(k), 1e-5) << "shape " << i;
            }
        }
        EXPECT_GT(seen.size(), 70U);
        EXPECT_GT(first, 3);
        EXPECT_EQ(gpu.compiled, first);
        EXPECT_EQ(cuda::requested_programs(*backend).size(), static_cast<size_t>(first));
    }
    EXPECT_EQ(gpu.problems(), "");
}

/// Programs requested after the first and the last shape.
struct Requests {
    size_t first = 0;
    size_t last = 0;
};

Requests plan_many(const Graph& g, const std::map<std::string, Interval>& sizes, int count,
                   bool with_profile = true) {
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 2);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    if (with_profile) {
        o.profiles = {profile_of(g, sizes)};
    }
    auto execution = backend->compile(std::make_shared<const Graph>(g), o)->create_execution();
    Shapes shapes(g, sizes);
    Requests r;
    for (int i = 0; i < count; ++i) {
        execution->prepare(shapes.next());
        r.last = cuda::requested_programs(*backend).size();
        r.first = i == 0 ? r.last : r.first;
    }
    return r;
}

TEST(ProfilePrograms, ProductsOfManyShapesCompileNothing) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[B,S,512]"));
    Value b = g.add_input("b", parse_type("f16[512,768]"));
    g.add_output("y", ops::exp(g, ops::matmul(g, a, b)));
    std::map<std::string, Interval> sizes{{"B", {1, 8}}, {"S", {1, 300}}};
    Requests known = plan_many(g, sizes, 150);
    EXPECT_EQ(known.first, known.last);
    Requests unknown = plan_many(g, sizes, 150, false);
    EXPECT_LT(unknown.first, unknown.last) << "what the profile is good for";
}

TEST(ProfilePrograms, ChoicesDoNotDependOnWhatRanBefore) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[S,256]"));
    Value b = g.add_input("b", parse_type("f16[256,256]"));
    g.add_output("y", ops::matmul(g, a, b));
    std::map<std::string, Interval> sizes{{"S", {1, 512}}};
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 2);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.profiles = {profile_of(g, sizes)};
    auto executable = backend->compile(std::make_shared<const Graph>(g), o);
    auto tactic = [](Execution& e, int64_t s) {
        e.prepare(std::vector<Shape>{{s, 256}, {256, 256}});
        std::string all;
        for (const StepInfo& step : e.steps()) {
            all += step.implementation + ", ";
        }
        return all;
    };
    auto one = executable->create_execution();
    auto other = executable->create_execution();
    std::vector<std::string> forward;
    std::vector<std::string> backward;
    for (int64_t s = 1; s <= 512; s += 7) {
        forward.push_back(tactic(*one, s));
    }
    for (int64_t s = 1 + 7 * static_cast<int64_t>(forward.size() - 1); s >= 1; s -= 7) {
        backward.push_back(tactic(*other, s));
    }
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(forward, backward);
}

TEST(ProfilePrograms, SamplesLieInTheProfile) {
    Graph g;
    g.add_input("a", parse_type("f16[N,7,C]"));
    g.add_input("b", parse_type("f16[C]"));
    std::map<std::string, Interval> sizes{{"N", {2, 9}}, {"C", {16, 1000}}};
    std::vector<Profile> profiles{profile_of(g, sizes)};
    std::vector<std::vector<Shape>> all = cuda::sample_shapes(g, profiles, 200);
    ASSERT_EQ(all.size(), 200U);
    EXPECT_EQ(all[0], (std::vector<Shape>{{5, 7, 508}, {508}}));
    EXPECT_EQ(all[1], (std::vector<Shape>{{2, 7, 16}, {16}}));
    EXPECT_EQ(all[2], (std::vector<Shape>{{9, 7, 1000}, {1000}}));
    for (const std::vector<Shape>& shapes : all) {
        for (size_t i = 0; i < shapes.size(); ++i) {
            EXPECT_NO_THROW(check_shape(g, i, shapes[i], profiles));
        }
        EXPECT_EQ(shapes[0][2], shapes[1][0]);
    }
    EXPECT_EQ(cuda::sample_shapes(g, profiles, 200), all);
    EXPECT_TRUE(cuda::sample_shapes(g, {}, 200).empty()) << "without bounds";
    profiles = {profile_of(g, {{"N", {2, 2}}, {"C", {16, 16}}})};
    EXPECT_TRUE(cuda::sample_shapes(g, profiles, 200).empty()) << "nothing varies";
}

} // namespace
} // namespace ingot::test
