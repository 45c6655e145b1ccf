// SPDX-License-Identifier: Apache-2.0
// Small independent steps become one launch, and give the same bytes.
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/options.h"
#include "emulator/emulated_gpu.h"
#include "kernels/common/joined_launch.h"
#include "kernels/copy/copy.h"
#include "kernels/harness.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <map>

namespace ingot::test {
namespace {

/// Queries, keys and values of one token from one product: rotated, and appended to caches.
Graph decode(int64_t past, bool read_cache) {
    Graph g;
    Value qkv = g.add_input("qkv", {DType::F16, {1, 1, 256}});
    Value past_k = g.add_input("past_k", {DType::F16, {1, 2, past, 32}});
    Value past_v = g.add_input("past_v", {DType::F16, {1, 2, past, 32}});
    Value cosine = g.add_input("cos", parse_type("f32[1,16]"));
    Value sine = g.add_input("sin", parse_type("f32[1,16]"));
    auto heads = [&](int64_t start, int64_t count) {
        Value part = ops::slice(g, qkv, -1, start * 32, count * 32);
        return ops::permute(g, ops::reshape(g, part, {1, 1, count, 32}), {0, 2, 1, 3});
    };
    Value q = ops::rope(g, {}, heads(0, 4), cosine, sine);
    Value k[] = {past_k, ops::rope(g, {}, heads(4, 2), cosine, sine)};
    Value v[] = {past_v, heads(6, 2)};
    Value all_k = ops::concat(g, k, 2);
    Value all_v = ops::concat(g, v, 2);
    g.add_output("k", all_k);
    g.add_output("v", all_v);
    g.add_output("y", read_cache ? ops::attention(g, {.scale = 0.2}, q, all_k, all_v) : q);
    return g;
}

struct Compiled {
    explicit Compiled(const Graph& g) {
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        execution = backend->compile(std::make_shared<const Graph>(g), o)->create_execution();
    }
    emulator::EmulatedGpu gpu{90};
    std::unique_ptr<Backend> backend = cuda::make_backend(gpu, 2);
    std::unique_ptr<Execution> execution;
};

std::vector<StepInfo> steps_of(const Graph& g) {
    Compiled c(g);
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(eval(g.type(v).dims, {}));
    }
    c.execution->prepare(shapes);
    return c.execution->steps();
}

std::vector<std::string> kernels_of(const Graph& g) {
    std::vector<std::string> out;
    for (const StepInfo& s : steps_of(g)) {
        out.push_back(s.kernel);
    }
    return out;
}

using Names = std::vector<std::string>;

TEST(Join, RotationsAndWhatIsAppendedAreOneLaunch) {
    Graph g = decode(5, true);
    EXPECT_EQ(kernels_of(g), (Names{"rope + rope + copy + copy + copy", "attention"}));
    expect_backend(g, {.tolerance = 4e-3});
    StepInfo joined = steps_of(g)[0];
    EXPECT_EQ(joined.implementation, "rope pairs + rope pairs + copy + copy + copy");
    EXPECT_EQ(joined.inputs.size(), 9U);
    EXPECT_EQ(joined.outputs.size(), 5U);
}

TEST(Join, LargeStepsStayApart) {
    // A past that is copied by more blocks than run at once.
    EXPECT_EQ(kernels_of(decode(100000, false)), (Names{"rope + rope + copy", "copy", "copy"}));
}

/// The caches of two layers in one tensor: their pasts are copied at once, by a view that has an
/// axis more than that of a new row.
Graph stacked_caches(int64_t past) {
    Graph g;
    Value new_k = g.add_input("new_k", {DType::F16, {1, 64}});
    Value past_k = g.add_input("past_k", {DType::F16, {2, 1, 2, past, 32}});
    Value cosine = g.add_input("cos", parse_type("f32[1,16]"));
    Value caches[2];
    for (int64_t layer = 0; layer < 2; ++layer) {
        Value row = ops::reshape(g, new_k, {1, 2, 1, 32});
        Value old = ops::slice(g, past_k, 0, layer, 1);
        Value both[] = {ops::reshape(g, old, {1, 2, past, 32}),
                        layer == 0 ? ops::rope(g, {}, row, cosine, cosine) : row};
        caches[layer] = ops::reshape(g, ops::concat(g, both, 2), {1, 1, 2, past + 1, 32});
    }
    g.add_output("k", ops::concat(g, caches, 0));
    return g;
}

TEST(Join, RowsPassThePastOfAllLayers) {
    EXPECT_EQ(kernels_of(stacked_caches(50000)), (Names{"rope + copy", "copy"}));
    Graph small = stacked_caches(5);
    EXPECT_EQ(kernels_of(small), (Names{"rope + copy + copy"}));
    expect_backend(small);
}

TEST(Join, WhatDependsStaysBehind) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[2,3,4,16]"));
    Value c = g.add_input("c", parse_type("f32[4,8]"));
    Value s = g.add_input("s", parse_type("f32[4,8]"));
    Value a = ops::rope(g, {}, x, c, s);
    Value b = ops::rope(g, {}, a, s, c);                         // reads the one before
    Value d = ops::rope(g, ops::Rope{true}, x, s, c);            // goes with the first
    Value e = ops::rope(g, {}, ops::rope(g, {}, d, c, s), c, s); // the inner one goes with `b`
    for (Value y : {b, d, e}) {
        g.add_output("", y);
    }
    EXPECT_EQ(kernels_of(g), (Names{"rope + rope", "rope + rope", "rope"}));
    expect_backend(g);
}

TEST(Join, PartsOfOtherTextsAndElements) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[40,33]"));
    Value y = g.add_input("y", parse_type("i64[40,33]"));
    g.add_output("a", ops::exp(g, x));
    g.add_output("b", ops::add(g, y, y));
    g.add_output("c", ops::reverse(g, x, 1));
    g.add_output("d", ops::cast(g, y, DType::F32));
    EXPECT_EQ(kernels_of(g), Names{"map + map + map + copy"});
    expect_backend(g);
}

TEST(Join, ObserversSeeWhatEveryPartMade) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[2,3,4,16]"));
    Value c = g.add_input("c", parse_type("f32[4,8]"));
    Value a = ops::rope(g, {}, x, c, c);
    Value b = ops::rope(g, ops::Rope{true}, x, c, c);
    g.set_value_name(a, "a");
    g.set_value_name(b, "b");
    g.add_output("a", a);
    g.add_output("b", b);
    Compiled compiled(g);
    Execution& execution = *compiled.execution;
    Tensor in[] = {Tensor::empty(DType::F32, {2, 3, 4, 16}), Tensor::empty(DType::F32, {4, 8})};
    for (Tensor& t : in) {
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, static_cast<double>(i % 17) / 8);
        }
    }
    std::map<std::string, Tensor> seen;
    execution.change([&](RunSettings& changed) {
        changed.observer = [&seen](const ObservedValue& v) {
            seen.emplace(std::string(v.name), v.tensor);
        };
    });
    std::vector<Tensor> out(2);
    ASSERT_TRUE(execution.run(in, out).ok()) << execution.error();
    EXPECT_EQ(execution.steps().size(), 1U);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_TRUE(seen.at("a") == out[0]);
    EXPECT_TRUE(seen.at("b") == out[1]);
    EXPECT_FALSE(out[0] == out[1]);
}

TEST(Join, AsksForRowsOfPlainBlocks) {
    plan::Operand from{DType::F32, 0, plan::dense({1000})};
    plan::Operand to{DType::F32, 1, plan::dense({1000})};
    kernels::Launch l = kernels::emit_copy(from, to, kernels::arch_of(90)).launches[0];
    EXPECT_TRUE(kernels::can_join(l));
    const kernels::Launch* const twice[] = {&l, &l};
    kernels::Launch both = kernels::joined(twice);
    EXPECT_EQ(both.grid[0], 2 * l.grid[0]);
    EXPECT_EQ(both.program.body.find("namespace part1"), std::string::npos) << "equal texts";
    EXPECT_EQ(both.args.offsets().size(), 2 * l.args.offsets().size() + 1);
    for (const kernels::Arch& arch : kernels::known_archs()) {
        if (!cuda::nvrtc_version().empty()) {
            EXPECT_NO_THROW(
                cuda::nvrtc_compile(kernels::full_text(both.program), std::string(arch.nvrtc)));
        }
    }
    kernels::Launch other = l;
    other.shared = 16;
    EXPECT_FALSE(kernels::can_join(other));
    other = l;
    other.grid[1] = 2;
    EXPECT_FALSE(kernels::can_join(other));
    other = l;
    other.program.kernel.reset(); // a text that nobody knows the parameters of
    EXPECT_FALSE(kernels::can_join(other));
}

} // namespace
} // namespace ingot::test
