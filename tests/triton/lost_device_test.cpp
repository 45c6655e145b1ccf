// SPDX-License-Identifier: Apache-2.0
// A lost or hanging device ends the process, after the answers. Each test runs in a process of its
// own, which these end.
#include "ingot.h"
#include "tests/triton/scene.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

namespace {
const char* device_error = nullptr;
} // namespace

// In place of libingot's: the CPU is never lost.
extern "C" const char* ingotGetDeviceError(const nvinfer1::ICudaEngine* /*engine*/) noexcept {
    return device_error;
}

namespace ingot::triton {
namespace {

std::unique_ptr<TRITONBACKEND_Request> request_of(float value) {
    auto out = std::make_unique<TRITONBACKEND_Request>();
    out->inputs.push_back(float_input("x", {1, 1}, {value}));
    out->outputs = {"y"};
    return out;
}

/// However busy the machine is, what a test writes after the loss is written before the end.
constexpr const char* with_time_for_answers = R"({"cmdline":{"exit-delay-ms":"2000"}})";

/// A run with a negative value finds the device lost.
int lose_for_negative(const float* x, float* y, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
        if (x[i] < 0) {
            device_error = "cuStreamSynchronize: an illegal memory access";
            return 1;
        }
        y[i] = x[i];
    }
    return 0;
}

[[noreturn]] void wait_for_the_end() {
    std::this_thread::sleep_for(std::chrono::minutes(1));
    std::exit(3);
}

void lose_the_device() {
    Scene scene(function_engine(lose_for_negative));
    scene.backend.config.json = with_time_for_answers;
    if (!scene.start(2).empty()) {
        std::exit(2);
    }
    auto good = request_of(1);
    auto bad = request_of(-1);
    auto later = request_of(2);
    std::string first = scene.execute({good.get(), bad.get()});
    std::string second = scene.execute({later.get()}, 1);
    std::string ready = text_of(TRITONBACKEND_ModelInstanceReady(scene.instances[1].get()));
    std::fprintf(stderr, "first '%s' good %d bad %d; second %s; ready %s; metric %g\n",
                 first.c_str(), static_cast<int>(good->code), static_cast<int>(bad->code),
                 second.c_str(), ready.c_str(),
                 FakeHost::get().values["ingot_device_lost{model=model,version=1}"]);
    wait_for_the_end();
}

TEST(TritonLostDeviceDeathTest, EndsTheProcessWith86AfterTheAnswers) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // 1 is INTERNAL (500), 4 UNAVAILABLE (503).
    EXPECT_EXIT(lose_the_device(), testing::ExitedWithCode(86),
                "first '' good 1 bad 1; second 4 this server is about to restart: model version 1: "
                "the device is lost: cuStreamSynchronize: an illegal memory access; ready 4 .*; "
                "metric 1");
}

void hold_after_loss() {
    Scene scene(function_engine(lose_for_negative));
    scene.backend.config.json = R"({"cmdline":{"after-loss":"hold","exit-delay-ms":"2000"}})";
    if (!scene.start(2).empty()) {
        std::exit(2);
    }
    auto bad = request_of(-1);
    auto later = request_of(2);
    scene.execute({bad.get()});
    std::fprintf(stderr, "bad %d; ready %s; ", static_cast<int>(bad->code),
                 text_of(TRITONBACKEND_ModelInstanceReady(scene.instances[1].get())).c_str());
    scene.execute({later.get()}, 1);
    std::fprintf(stderr, "later is answered");
    std::exit(3);
}

TEST(TritonLostDeviceDeathTest, LaterRequestsAreLeftToAProxyWhereTheOperatorSaysSo) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(hold_after_loss(), testing::ExitedWithCode(86), "bad 1; ready 4 [^;]*; $");
}

TEST(TritonLostDevice, OptionsAfterTheLossAreTwo) {
    Scene scene(row_engine(8));
    scene.backend.config.json = R"({"cmdline":{"after-loss":"wait"}})";
    EXPECT_NE(
        scene.start().find("--backend-config=after-loss: answer or hold is expected, got 'wait'"),
        std::string::npos);
}

TEST(TritonLostDevice, TheDelayOfTheEndIsANumber) {
    Scene scene(row_engine(8));
    scene.backend.config.json = R"({"cmdline":{"exit-delay-ms":"0.2 s"}})";
    EXPECT_NE(scene.start().find(
                  "--backend-config=exit-delay-ms: milliseconds are expected, got '0.2 s'"),
              std::string::npos);
}

void hang() {
    auto never_end = [](const float* x, float* y, int64_t) {
        if (x[0] < 0) {
            std::this_thread::sleep_for(std::chrono::hours(1));
        }
        y[0] = x[0];
        return 0;
    };
    Scene scene(function_engine(never_end),
                R"({"parameters":{"hang_timeout_ms":{"string_value":"1000"}}})");
    scene.backend.config.json = with_time_for_answers;
    if (!scene.start().empty()) {
        std::exit(2);
    }
    auto good = request_of(1);
    scene.execute({good.get()});
    std::fprintf(stderr, "answered %d\n", good->responses);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200)); // an idle model does not hang
    auto bad = request_of(-1);
    std::thread watch([&] {
        while (bad->responses == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the text is written
        std::fprintf(stderr, "; bad %d %s;", static_cast<int>(bad->code), bad->text.c_str());
    });
    scene.execute({bad.get()});
    std::exit(3);
}

TEST(TritonLostDeviceDeathTest, ARunThatDoesNotEndEndsTheProcessWith87) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(hang(), testing::ExitedWithCode(87),
                "answered 1(.|\n)*; bad 1 model version 1: a run has not ended after 1000 ms "
                "\\(parameter hang_timeout_ms\\);");
}

/// {thread of this process: how often it has waited}
std::map<std::string, int64_t> waits_of_threads() {
    std::map<std::string, int64_t> out;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        constexpr std::string_view key = "voluntary_ctxt_switches:";
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with(key)) {
                out[task.path().filename()] = std::stoll(line.substr(key.size()));
            }
        }
    }
    return out;
}

/// The line about the one instance of such a model.
std::string line_of_instance(TRITONSERVER_InstanceGroupKind kind, const std::string& config) {
    Scene scene(row_engine(1), config);
    scene.kind = kind;
    EXPECT_EQ(scene.start(), "");
    std::string logged = FakeHost::get().logged();
    size_t at = logged.rfind("' is ready on ");
    EXPECT_NE(at, std::string::npos) << logged;
    return logged.substr(at, logged.find('\n', at) - at);
}

TEST(TritonLostDevice, ARunMayTakeAMinuteOnAGpuAndAsLongAsItTakesOnTheCpu) {
    SimulatedGpu gpu;
    const std::string two_seconds = R"({"parameters":{"hang_timeout_ms":{"string_value":"2000"}}})";
    const std::string no_limit = R"({"parameters":{"hang_timeout_ms":{"string_value":"0"}}})";
    constexpr auto on_cpu = TRITONSERVER_INSTANCEGROUPKIND_CPU;
    constexpr auto on_gpu = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    EXPECT_TRUE(line_of_instance(on_gpu, "{}").ends_with(", a run may take 60000 ms"));
    EXPECT_TRUE(line_of_instance(on_gpu, no_limit).ends_with(" prepared"));
    EXPECT_TRUE(line_of_instance(on_cpu, "{}").ends_with(" prepared"));
    for (auto kind : {on_cpu, on_gpu}) {
        EXPECT_TRUE(line_of_instance(kind, two_seconds).ends_with(", a run may take 2000 ms"));
    }
}

TEST(TritonLostDevice, RunsThatEndInTimeWakeNoThread) {
    Scene scene(function_engine([](const float* x, float* y, int64_t) {
                    y[0] = x[0];
                    return 0;
                }),
                R"({"parameters":{"hang_timeout_ms":{"string_value":"60000"}}})");
    ASSERT_EQ(scene.start(), "");
    auto run = [&](int times) {
        for (int i = 0; i < times; ++i) {
            auto r = request_of(1);
            ASSERT_EQ(scene.execute({r.get()}), "");
        }
    };
    std::map<std::string, int64_t> others = waits_of_threads();
    run(1); // starts the thread that watches
    std::map<std::string, int64_t> before = waits_of_threads();
    EXPECT_GT(before.size(), others.size());
    constexpr int runs = 500;
    run(runs);
    for (const auto& [thread, waits] : waits_of_threads()) {
        if (!others.contains(thread)) {
            EXPECT_LT(waits - before[thread], runs / 10) << thread;
        }
    }
}

TEST(TritonLostDevice, OtherErrorsDoNotEndTheProcess) {
    Scene scene(function_engine([](const float* x, float* y, int64_t) {
        y[0] = x[0];
        return x[0] < 0 ? 1 : 0;
    }));
    ASSERT_EQ(scene.start(), "");
    for (float v : {-1.0F, 1.0F}) {
        auto r = request_of(v);
        ASSERT_EQ(scene.execute({r.get()}), "");
        EXPECT_EQ(r->answered_error, v < 0);
    }
    EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceReady(scene.instances[0].get())), "");
}

} // namespace
} // namespace ingot::triton
