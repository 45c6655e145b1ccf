// SPDX-License-Identifier: Apache-2.0
// Eight threads do what sessions beside each other do to what they share: engines, scratch memory
// and logs.
#include "plugins/onnxruntime/proto.h"
#include "plugins/onnxruntime/shared_engines.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace ingot::ort {
namespace {

std::atomic<int> messages = 0;

const OrtApi& fake_api() {
    static const OrtApi api = [] {
        OrtApi a{};
        a.Logger_LogMessage = [](const OrtLogger*, OrtLoggingLevel, const char*, const char*, int,
                                 const char*) -> OrtStatus* {
            ++messages;
            return nullptr;
        };
        a.Logger_GetLoggingSeverityLevel = [](const OrtLogger*,
                                              OrtLoggingLevel* out) -> OrtStatus* {
            *out = ORT_LOGGING_LEVEL_VERBOSE;
            return nullptr;
        };
        a.ReleaseStatus = [](OrtStatus*) {};
        return a;
    }();
    return api;
}

std::shared_ptr<ApiLogger> new_logger() {
    static const int logger = 0;
    Host host;
    host.api = &fake_api();
    host.version = newest_api;
    return std::make_shared<ApiLogger>(Log(host, reinterpret_cast<const OrtLogger*>(&logger)),
                                       true);
}

Proto value_info(const char* name) {
    Proto shape;
    shape.message(1, Proto().text(2, "n")).message(1, Proto().integer(1, 2));
    return Proto().text(1, name).message(
        2, Proto().message(1, Proto().integer(1, 1).message(2, shape)));
}

/// y = op(x), of x[n,2].
EngineBytes engine_of(const char* op) {
    Proto graph;
    graph.message(1, Proto().text(1, "x").text(2, "y").text(3, "y").text(4, op))
        .text(2, "g")
        .message(11, value_info("x"))
        .message(12, value_info("y"));
    OnnxModel model;
    model.bytes = Proto()
                      .integer(1, 9)
                      .message(7, graph)
                      .message(8, Proto().text(1, "").integer(2, 17))
                      .bytes();
    Options options;
    BuildRequest request;
    request.options = &options;
    return build_engine(model, request, new_logger(), "the model");
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

} // namespace
} // namespace ingot::ort
