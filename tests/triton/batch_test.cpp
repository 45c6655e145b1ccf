// SPDX-License-Identifier: Apache-2.0
// Requests in, responses out: what runs together, what is wrong alone.
#include "tests/triton/scene.h"

#include <thread>

namespace ingot::triton {
namespace {

using Requests = std::vector<std::unique_ptr<TRITONBACKEND_Request>>;

std::vector<TRITONBACKEND_Request*> pointers(const Requests& requests) {
    std::vector<TRITONBACKEND_Request*> out;
    for (const auto& r : requests) {
        out.push_back(r.get());
    }
    return out;
}

void expect_answered_once(const TRITONBACKEND_Request& r) {
    EXPECT_EQ(r.responses, 1);
    EXPECT_EQ(r.released, 1);
}

TEST(TritonBatch, RequestsOfOneCallAreOneRun) {
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start(), "");
    Requests requests;
    for (int64_t rows : {1, 3, 2}) {
        requests.push_back(row_request(rows, static_cast<unsigned>(rows)));
    }
    ASSERT_EQ(scene.execute(pointers(requests)), "");
    for (const auto& r : requests) {
        expect_answered_once(*r);
        expect_right(*r);
    }
    EXPECT_EQ(scene.instances[0]->batches, 1U);
    EXPECT_EQ(scene.instances[0]->batch_rows, 6U);
    EXPECT_EQ(scene.instances[0]->successes, 3U);
    const auto& values = FakeHost::get().values;
    EXPECT_EQ(values.at("ingot_runs{model=model,version=1}"), 1);
    EXPECT_EQ(values.at("ingot_padded_rows{model=model,version=1}"), 2); // 6 rows in a bucket of 8
    EXPECT_EQ(values.count("ingot_unprepared_shapes{model=model,version=1}"), 0U);
}

TEST(TritonBatch, TimeSpentPreparingIsCountedOnceAShape) {
    Scene scene(row_engine(9), R"({"parameters":{"buckets":{"string_value":"none"}}})");
    ASSERT_EQ(scene.start(), "");
    auto seconds = [] {
        return FakeHost::get().values.at("ingot_preparing_seconds{model=model,version=1}");
    };
    auto run = [&](int64_t rows) {
        auto r = row_request(rows, 1);
        EXPECT_EQ(scene.execute({r.get()}), "");
        expect_right(*r);
        return seconds();
    };
    double at_start = seconds();
    EXPECT_GT(at_start, 0);
    EXPECT_EQ(run(9), at_start); // prepared before the model was ready
    double first = run(5);
    EXPECT_GT(first, at_start);
    EXPECT_EQ(run(5), first);
    EXPECT_EQ(FakeHost::get().values.at("ingot_unprepared_shapes{model=model,version=1}"), 1);
}

TEST(TritonBatch, EveryRowCountGetsItsAnswer) {
    for (const char* buckets : {"", "none", "3,5"}) {
        std::string parameters = *buckets == 0 ? "{}"
                                               : R"({"parameters":{"buckets":{"string_value":")" +
                                                     std::string(buckets) + R"("}}})";
        Scene scene(row_engine(9), parameters);
        ASSERT_EQ(scene.start(), "");
        for (int64_t rows = 1; rows <= 9; ++rows) {
            Requests requests;
            requests.push_back(row_request(rows, 100 + static_cast<unsigned>(rows)));
            ASSERT_EQ(scene.execute(pointers(requests)), "");
            expect_right(*requests[0]);
        }
    }
}

TEST(TritonBatch, OnlyOutputsThatAreAskedForAreSent) {
    Scene scene(row_engine(4));
    ASSERT_EQ(scene.start(), "");
    Requests requests;
    requests.push_back(row_request(2, 1));
    requests.push_back(row_request(1, 2));
    requests[0]->outputs = {"sum"};
    requests[1]->outputs = {};
    ASSERT_EQ(scene.execute(pointers(requests)), "");
    expect_right(*requests[0]);
    EXPECT_EQ(requests[1]->results.size(), 0U);
    EXPECT_FALSE(requests[1]->answered_error) << requests[1]->text;
}

TEST(TritonBatch, MoreRowsThanTheLimitRunInTurns) {
    Scene scene(row_engine(4));
    ASSERT_EQ(scene.start(), "");
    Requests requests;
    for (unsigned i = 0; i < 5; ++i) {
        requests.push_back(row_request(2, i));
    }
    ASSERT_EQ(scene.execute(pointers(requests)), "");
    for (const auto& r : requests) {
        expect_right(*r);
    }
    EXPECT_EQ(scene.instances[0]->batches, 3U);
}

struct Wrong {
    const char* what;
    std::function<void(TRITONBACKEND_Request&)> spoil;
    TRITONSERVER_Error_Code code;
    const char* text;
};

const Wrong wrong_requests[] = {
    {"no input", [](auto& r) { r.inputs.clear(); }, TRITONSERVER_ERROR_INVALID_ARG,
     "unknown request input name x"},
    {"type", [](auto& r) { r.inputs[0].type = TRITONSERVER_TYPE_FP64; },
     TRITONSERVER_ERROR_INVALID_ARG, "input 'x' has elements of FP64, expected FP32"},
    {"rank", [](auto& r) { r.inputs[0].shape = {3}; }, TRITONSERVER_ERROR_INVALID_ARG,
     "input 'x' has shape [3], expected [-1,3] within [1,3] to [8,3]"},
    {"size",
     [](auto& r) {
         r.inputs[0].shape = {1, 4};
     },
     TRITONSERVER_ERROR_INVALID_ARG,
     "input 'x' has shape [1,4], expected [-1,3] within [1,3] to [8,3]"},
    {"negative",
     [](auto& r) {
         r.inputs[0].shape = {-1, 3};
     },
     TRITONSERVER_ERROR_INVALID_ARG,
     "input 'x' has shape [-1,3], expected [-1,3] within [1,3] to [8,3]"},
    {"huge",
     [](auto& r) {
         r.inputs[0].shape = {INT64_MAX, 3};
     },
     TRITONSERVER_ERROR_INVALID_ARG, "shape [9223372036854775807,3] has too many elements"},
    {"too many rows", [](auto& r) { r.inputs[0] = row_request(9, 0)->inputs[0]; },
     TRITONSERVER_ERROR_INVALID_ARG, "the request has 9 rows, at most 8 are allowed"},
    {"few bytes", [](auto& r) { r.inputs[0].buffers.pop_back(); }, TRITONSERVER_ERROR_INVALID_ARG,
     "input 'x' of shape [2,3] has 13 bytes, expected 24"},
    {"many bytes",
     [](auto& r) {
         r.inputs[0].buffers.push_back({1, 2, 3});
     },
     TRITONSERVER_ERROR_INVALID_ARG, "input 'x' of shape [2,3] has 27 bytes, expected 24"},
    {"memory of a GPU", [](auto& r) { r.inputs[0].memory = TRITONSERVER_MEMORY_GPU; },
     TRITONSERVER_ERROR_UNSUPPORTED,
     "input 'x' is in memory of GPU 0, and this instance runs on the CPU"},
    {"output",
     [](auto& r) {
         r.outputs = {"sum", "product"};
     },
     TRITONSERVER_ERROR_INVALID_ARG, "the engine has no output 'product'"},
    {"cancelled", [](auto& r) { r.cancelled = true; }, TRITONSERVER_ERROR_CANCELLED,
     "the request was cancelled"},
};

TEST(TritonBatch, AWrongRequestFailsAlone) {
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start(), "");
    for (const Wrong& wrong : wrong_requests) {
        SCOPED_TRACE(wrong.what);
        Requests requests;
        for (unsigned i = 0; i < 3; ++i) {
            requests.push_back(row_request(2, i));
        }
        wrong.spoil(*requests[1]);
        ASSERT_EQ(scene.execute(pointers(requests)), "");
        for (const auto& r : requests) {
            expect_answered_once(*r);
        }
        expect_right(*requests[0]);
        expect_right(*requests[2]);
        EXPECT_TRUE(requests[1]->answered_error);
        EXPECT_EQ(requests[1]->text, wrong.text);
        EXPECT_EQ(requests[1]->code, wrong.code);
    }
}

TEST(TritonBatch, AValueThatFailsTheRunFailsItsOwnRequestAlone) {
    auto refuse_negative = [](const float* x, float* y, int64_t rows) {
        for (int64_t i = 0; i < rows; ++i) {
            if (x[i] < 0) {
                return 7;
            }
            y[i] = x[i] + 1;
        }
        return 0;
    };
    Scene scene(function_engine(refuse_negative));
    ASSERT_EQ(scene.start(), "");
    Requests requests;
    for (float v : {1.0F, -1.0F, 2.0F}) {
        requests.push_back(std::make_unique<TRITONBACKEND_Request>());
        requests.back()->inputs.push_back(float_input("x", {1, 1}, {v}));
        requests.back()->outputs = {"y"};
    }
    ASSERT_EQ(scene.execute(pointers(requests)), "");
    EXPECT_EQ(floats(requests[0]->results.at("y")), std::vector<float>{2});
    EXPECT_EQ(floats(requests[2]->results.at("y")), std::vector<float>{3});
    EXPECT_TRUE(requests[1]->answered_error);
    EXPECT_NE(requests[1]->text.find("7"), std::string::npos) << requests[1]->text;
    for (const auto& r : requests) {
        expect_answered_once(*r);
    }
}

TEST(TritonBatch, RequestsOfOtherShapesRunBesideEachOther) {
    // Without max_batch_size each request is a run, of whatever shape.
    Scene scene(row_engine(0), R"({"input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1,3]}],
        "output":[{"name":"sum","data_type":"TYPE_FP32","dims":[-1,1]}]})");
    ASSERT_EQ(scene.start(), "");
    Requests requests;
    for (int64_t rows : {5, 0, 40}) {
        requests.push_back(row_request(rows, static_cast<unsigned>(rows)));
    }
    ASSERT_EQ(scene.execute(pointers(requests)), "");
    for (const auto& r : requests) {
        expect_right(*r);
    }
    EXPECT_EQ(scene.instances[0]->batches, 3U);
}

TEST(TritonBatch, InstancesRunAtTheSameTime) {
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start(3), "");
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
            for (unsigned round = 0; round < 40; ++round) {
                Requests requests;
                requests.push_back(row_request(1 + round % 4, round * 3));
                requests.push_back(row_request(1 + (round + i) % 4, round * 3 + 1));
                EXPECT_EQ(scene.execute(pointers(requests), i), "");
                expect_right(*requests[0]);
                expect_right(*requests[1]);
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
}

} // namespace
} // namespace ingot::triton
