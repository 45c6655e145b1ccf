// SPDX-License-Identifier: Apache-2.0
// Eight threads do what sessions beside each other do to what they share: engines, scratch memory
// and logs.
#include "fake_host.h"
#include "plugins/onnxruntime/compute.h"
#include "plugins/onnxruntime/proto.h"
#include "plugins/onnxruntime/shared_engines.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

namespace ingot::ort {
namespace {

using test::messages;
using test::new_logger;

Proto value_info(const char* name) {
    Proto shape;
    shape.message(1, Proto().text(2, "n")).message(1, Proto().integer(1, 2));
    return Proto().text(1, name).message(
        2, Proto().message(1, Proto().integer(1, 1).message(2, shape)));
}

OnnxModel model_of(const Proto& graph) {
    OnnxModel model;
    model.bytes = Proto()
                      .integer(1, 9)
                      .message(7, graph)
                      .message(8, Proto().text(1, "").integer(2, 17))
                      .bytes();
    return model;
}

/// y = op(x), of x[n,2].
EngineBytes engine_of(const char* op) {
    Proto graph;
    graph.message(1, Proto().text(1, "x").text(2, "y").text(3, "y").text(4, op))
        .text(2, "g")
        .message(11, value_info("x"))
        .message(12, value_info("y"));
    Options options;
    BuildRequest request;
    request.options = &options;
    return build_engine(model_of(graph), request, new_logger(), "the model");
}

/// The results for x = {-1, 2} in a context of its own.
std::array<float, 2> run(const LoadedEngine& loaded) {
    std::array<float, 2> x{-1, 2};
    std::array<float, 2> y{};
    std::unique_ptr<nvinfer1::IExecutionContext> c(loaded.engine->createExecutionContext());
    bool done = c->setInputShape("x", nvinfer1::Dims2{1, 2}) &&
                c->setTensorAddress("x", x.data()) && c->setTensorAddress("y", y.data()) &&
                c->enqueueV3(nullptr);
    EXPECT_TRUE(done);
    return y;
}

TEST(SessionThreads, CompileLoadShareRunAndCloseBesideEachOther) {
    constexpr int threads = 8;
    constexpr int rounds = 12;
    const std::array<EngineBytes, 2> compiled{engine_of("Relu"), engine_of("Neg")};
    const std::array<std::array<float, 2>, 2> expected{{{0, 2}, {1, -2}}};
    SharedEngines shared;
    std::atomic<int> loads = 0;
    auto session = [&](int thread, int round) {
        const size_t which = static_cast<size_t>(thread + round) % 2;
        auto load_from = [&](const EngineContent& content) {
            ++loads;
            return load_engine(content, {}, {}, new_logger(), "the engine");
        };
        if (round % 4 == 3) { // a session that compiles, and shares nothing
            EngineBytes own = engine_of(which == 0 ? "Relu" : "Neg");
            EXPECT_EQ(run(load_from(content_of(own))), expected[which]);
            return;
        }
        EngineContent content = content_of(compiled[which]);
        SharedEngines::Found found =
            shared.get(engine_key(content.digest, "", {}, {}), [&] { return load_from(content); });
        EXPECT_EQ(run(*found.engine), expected[which]);
    };
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (int r = 0; r < rounds; ++r) {
                session(t, r);
            }
        });
    }
    for (std::thread& t : all) {
        t.join();
    }
    EXPECT_GE(loads, threads * rounds / 4 + 2);
    EXPECT_LE(loads, threads * rounds);
    EXPECT_GT(messages, 0);
}

// --- dynamic options
// ------------------------------------------------------------------------------

constexpr size_t width = 64;

/// y = x * w, of x[n,64], where w is three times the identity, whose elements may be streamed.
LoadedEngine streaming_engine(const Options& options) {
    std::vector<float> w(width * width, 0);
    for (size_t i = 0; i < width; ++i) {
        w[i * width + i] = 3;
    }
    auto side = [](const char* name) {
        Proto shape;
        shape.message(1, Proto().text(2, "n")).message(1, Proto().integer(1, width));
        return Proto().text(1, name).message(
            2, Proto().message(1, Proto().integer(1, 1).message(2, shape)));
    };
    Proto weights;
    weights.integer(1, width).integer(1, width).integer(2, 1).text(8, "w").text(
        9, {reinterpret_cast<const char*>(w.data()), w.size() * sizeof(float)});
    Proto graph;
    graph.message(1, Proto().text(1, "x").text(1, "w").text(2, "y").text(3, "y").text(4, "MatMul"))
        .text(2, "g")
        .message(5, weights)
        .message(11, side("x"))
        .message(12, side("y"));
    BuildRequest request{{}, &options, {}};
    return build_loaded_engine(model_of(graph), request, new_logger(), "the model");
}

/// A session of one node, whose weights may be streamed.
struct Session {
    std::shared_ptr<RunSettings> settings = std::make_shared<RunSettings>();
    std::unique_ptr<NodeCompute> node;
    explicit Session(const char* budget) {
        settings->options.nv_weight_streaming_budget = budget;
        settings->budget = StreamingBudget::parse(budget);
        auto engine = std::make_shared<const LoadedEngine>(streaming_engine(settings->options));
        NodeBinding binding{"the node", {{"x", 0}}, {"y"}};
        node = std::make_unique<NodeCompute>(test::fake_host(), engine, binding, settings, nullptr,
                                             nullptr, nullptr);
    }
    /// A run of `rows` rows.
    void run(size_t rows) {
        std::vector<float> x(rows * width);
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 17) - 8;
        }
        test::FakeRun kernel{{{static_cast<int64_t>(rows), width}, x}};
        OrtStatus* failed = node->Compute(node.get(), nullptr, kernel.context());
        ASSERT_EQ(failed, nullptr) << test::text_of(failed);
        ASSERT_EQ(kernel.output.values.size(), x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            ASSERT_EQ(kernel.output.values[i], 3 * x[i]) << i;
        }
    }
};

TEST(SessionThreads, RunCompileAndCloseWhileDynamicOptionsChange) {
    constexpr int rounds = 40;
    Session session("1");
    ASSERT_GT(streaming_engine(session.settings->options).engine->getStreamableWeightsSize(), 0);
    auto change = [&](const char* key, const char* value) {
        session.settings->set_dynamic_option(key, value);
    };
    auto each = [](auto f) {
        return [f] {
            for (int r = 0; r < rounds; ++r) {
                f(r);
            }
        };
    };
    auto run = each([&](int r) { session.run(1 + static_cast<size_t>(r) % 3); });
    auto budget = each([&](int r) {
        constexpr const char* budgets[] = {"0", "50%", "1", "8K", "-1"};
        change("nv_weight_streaming_budget", budgets[static_cast<size_t>(r) % 5]);
    });
    auto workload = each([&](int r) {
        change("ep.dynamic.workload_type", r % 2 == 0 ? "Efficient" : "Default");
        EXPECT_THROW(change("ep.dynamic.workload_type", "Slow"), Error);
    });
    auto others = each([](int r) { // compiled, loaded, run and closed beside it
        if (r % 8 == 0) {
            Session other("50%");
            other.run(2);
        }
    });
    std::vector<std::thread> all;
    for (const std::function<void()>& f : std::initializer_list<std::function<void()>>{
             run, run, run, run, budget, workload, others, others}) {
        all.emplace_back(f);
    }
    for (std::thread& t : all) {
        t.join();
    }
    change("nv_weight_streaming_budget", "0");
    session.run(3);
}

} // namespace
} // namespace ingot::ort
