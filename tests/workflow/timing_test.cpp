// SPDX-License-Identifier: Apache-2.0
#include "backends/backends.h"
#include "ops/ops.h"
#include "workflow/timing.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ingot {
namespace {

/// `n` inferences on a GPU, one after the other, with these times of their parts in ms.
Timing trace(int n, double enqueue, double h2d, double compute, double d2h) {
    Timing t;
    double now = 0;
    for (int i = 0; i < n; ++i) {
        InferenceTime x;
        x.start_enqueue = x.start_h2d = now;
        x.end_enqueue = now + enqueue;
        x.end_h2d = x.start_compute = now + h2d;
        x.end_compute = x.start_d2h = x.start_compute + compute;
        x.end_d2h = x.start_d2h + d2h;
        now = x.end_d2h;
        t.trace.push_back(x);
    }
    t.wall_s = now / 1000;
    return t;
}

std::vector<std::string> warnings_of(const Timing& t) {
    std::vector<std::string> out;
    for (const std::string& line : performance_lines(t, {99}, 10)) {
        if (line.starts_with("* ")) {
            out.push_back(line);
        }
    }
    return out;
}

std::shared_ptr<const Engine> small_engine() {
    Graph g("g");
    Value x = g.add_input("x", {DType::F32, {Dim(8)}});
    g.add_output("y", ops::add(g, x, x));
    return Engine::create(std::move(g), {}, {});
}

TEST(Timing, PercentilesAreThoseOfTrtexec) {
    std::vector<double> v = {5, 1, 4, 2, 3};
    EXPECT_EQ(percentile(v, 0), 1);
    EXPECT_EQ(percentile(v, 50), 3);
    EXPECT_EQ(percentile(v, 99), 5);
    EXPECT_EQ(percentile(v, 100), 5);
    EXPECT_EQ(percentile({}, 50), 0);
    EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Timing, SummaryLines) {
    std::vector<std::string> lines = performance_lines(trace(20, 0.25, 0.5, 2, 1), {90, 99}, 10);
    auto has = [&](const std::string& line) {
        return std::find(lines.begin(), lines.end(), line) != lines.end();
    };
    EXPECT_TRUE(has("Timing trace has 20 queries over 0.07 s"));
    EXPECT_TRUE(has("Average on 10 runs - GPU latency: 2 ms - Host latency: 3.5 ms (enqueue 0.25 "
                    "ms)"));
    EXPECT_TRUE(has("Throughput: 285.714 qps"));
    EXPECT_TRUE(has("Latency: min = 3.5 ms, max = 3.5 ms, mean = 3.5 ms, median = 3.5 ms, "
                    "percentile(90%) = 3.5 ms, percentile(99%) = 3.5 ms"));
    EXPECT_TRUE(has("H2D Latency: min = 0.5 ms, max = 0.5 ms, mean = 0.5 ms, median = 0.5 ms, "
                    "percentile(90%) = 0.5 ms, percentile(99%) = 0.5 ms"));
    EXPECT_TRUE(has("Total GPU Compute Time: 0.04 s"));
    EXPECT_TRUE(warnings_of(trace(20, 0.25, 0.5, 2, 1)).empty());
}

TEST(Timing, WarnsOfWhatBoundsTheThroughput) {
    auto one = [](const Timing& t) {
        std::vector<std::string> w = warnings_of(t);
        return w.size() == 1 ? w[0] : str(w.size(), " warnings");
    };
    EXPECT_EQ(one(trace(20, 1.7, 0.5, 2, 1)),
              "* Throughput may be bound by Enqueue Time rather "
              "than GPU Compute and the GPU may be under-utilized.");
    EXPECT_EQ(one(trace(20, 0.1, 2, 2, 1)),
              "* Throughput may be bound by host-to-device transfers for the inputs rather than "
              "GPU Compute and the GPU may be under-utilized.");
    EXPECT_EQ(one(trace(20, 0.1, 1, 2, 2.5)),
              "* Throughput may be bound by device-to-host transfers for the outputs rather than "
              "GPU Compute and the GPU may be under-utilized.");
    Timing on_caller = trace(20, 2, 0, 2, 0);
    on_caller.on_caller = true;
    EXPECT_TRUE(warnings_of(on_caller).empty());
    Timing uneven = trace(2, 0.1, 0.1, 2, 0.1);
    uneven.trace[1].end_compute += 2;
    EXPECT_EQ(one(uneven), "* GPU compute time is unstable, with coefficient of variance = "
                           "33.3333%.");
}

TEST(Timing, TransfersCanBeLeftOut) {
    Timing t = trace(3, 0.25, 0.5, 2, 1);
    leave_out_transfers(t);
    for (const InferenceTime& i : t.trace) {
        EXPECT_EQ(i.h2d(), 0);
        EXPECT_EQ(i.d2h(), 0);
        EXPECT_EQ(i.latency(), i.compute());
        EXPECT_DOUBLE_EQ(i.compute(), 2);
    }
}

TEST(Timing, StreamsShareOneTrace) {
    std::shared_ptr<const Engine> engine = small_engine();
    std::vector<std::unique_ptr<Context>> contexts;
    contexts.push_back(std::make_unique<Context>(engine, cpu_backend()));
    contexts.push_back(contexts[0]->sibling());
    contexts.push_back(contexts[0]->sibling());
    std::vector<Tensor> inputs = {Tensor::zeros(DType::F32, {8})};
    Timing t = measure(contexts, inputs, {50, 0, 0, 0, 0});
    EXPECT_EQ(t.streams, 3);
    EXPECT_EQ(t.trace.size(), 150U);
    EXPECT_GE(t.warm_up_queries, 3);
    EXPECT_TRUE(t.on_caller);
    EXPECT_EQ(t.outputs.size(), 1U);
    EXPECT_TRUE(std::is_sorted(t.trace.begin(), t.trace.end(),
                               [](const InferenceTime& a, const InferenceTime& b) {
                                   return a.start_enqueue < b.start_enqueue;
                               }));
    EXPECT_EQ(nlohmann::json::parse(times_json(t)).size(), 150U);
}

TEST(Timing, AnErrorInAStreamReachesTheCaller) {
    std::vector<std::unique_ptr<Context>> contexts;
    contexts.push_back(std::make_unique<Context>(small_engine(), cpu_backend()));
    contexts.push_back(contexts[0]->sibling());
    std::vector<Tensor> wrong = {Tensor::zeros(DType::F32, {9})};
    try {
        measure(contexts, wrong, {1, 0, 0, 0, 0});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        EXPECT_STREQ(e.what(), "input 'x' dimension 0 is 9, expected 8");
    }
}

TEST(Timing, StepsOfOneNameAreOneLayerOfARun) {
    LayerTimer timer;
    for (double scale : {1.0, 3.0, 2.0}) {
        timer.step({"twice", "dot", "own", {}, {}}, scale);
        timer.step({"", "copy", "own", {}, {}}, 1);
        timer.step({"twice", "map", "own", {}, {}}, 2 * scale);
        timer.run(3 * scale + 1);
    }
    LayerProfile p = timer.profile();
    EXPECT_EQ(p.runs, 3);
    EXPECT_DOUBLE_EQ(p.serial_ms, 7);
    ASSERT_EQ(p.layers.size(), 2U);
    EXPECT_EQ(p.layers[0].name, "twice");
    EXPECT_DOUBLE_EQ(p.layers[0].total_ms, 18);
    EXPECT_DOUBLE_EQ(p.layers[0].average_ms, 6);
    EXPECT_DOUBLE_EQ(p.layers[0].median_ms, 6);
    EXPECT_NEAR(p.layers[0].percentage, 85.71, 0.01);
    EXPECT_EQ(p.layers[1].name, "copy");
    EXPECT_DOUBLE_EQ(p.layers[1].median_ms, 1);
}

TEST(Timing, LayersAsTextAndAsJson) {
    Context context(small_engine(), cpu_backend());
    std::vector<StepInfo> steps = {
        {"conv1 + relu1", "conv", "own", {"f32[1,3,N,8] strides [1,2,3,4] 'x y'"}, {"f16[2] '%3'"}},
        {"", "copy", "own", {}, {}}};
    EXPECT_EQ(
        layer_lines(context, steps, false),
        (std::vector<std::string>{"Layers:", "conv1 + relu1", "copy", "", "Bindings:", "x", "y"}));
    EXPECT_EQ(layer_lines(context, steps, true)[1],
              "Name: conv1 + relu1, LayerType: conv, Inputs: [ f32[1,3,N,8] strides [1,2,3,4] "
              "'x y' ], Outputs: [ f16[2] '%3' ], TacticName: own");
    nlohmann::json j = nlohmann::json::parse(layers_json(context, steps, true));
    const nlohmann::json& layer = j["Layers"][0];
    EXPECT_EQ(layer["Metadata"], "[ONNX Layer: conv1]\x1e[ONNX Layer: relu1]");
    EXPECT_EQ(layer["Inputs"][0]["Name"], "x y");
    EXPECT_EQ(layer["Outputs"][0]["Name"], "%3");
    EXPECT_EQ(layer["Inputs"][0]["Dimensions"], nlohmann::json({1, 3, "N", 8}));
    EXPECT_EQ(layer["Inputs"][0]["Format/Datatype"], "f32 strides [1,2,3,4]");
    EXPECT_EQ(layer["Outputs"][0]["Format/Datatype"], "f16 row major");
    EXPECT_EQ(j["Layers"][1]["Name"], "copy");
    EXPECT_EQ(j["I/O Tensors"], nlohmann::json({"x", "y"}));
}

} // namespace
} // namespace ingot
