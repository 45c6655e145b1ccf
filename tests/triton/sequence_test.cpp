// SPDX-License-Identifier: Apache-2.0
// Sequences: controls are inputs like others, and states go from request to request.
#include "plugins/triton/model.h"
#include "tests/triton/scene.h"

namespace ingot::triton {
namespace {

const char* const sequence_config = R"({"max_batch_size":4,"sequence_batching":{
    "control_input":[{"name":"start","control":[
        {"kind":"CONTROL_SEQUENCE_START","fp32_false_true":[0,1]}]}],
    "state":[{"input_name":"total_before","output_name":"total","data_type":"TYPE_FP32",
              "dims":[1]}]}})";

std::unique_ptr<TRITONBACKEND_Request> sum_request(float x, bool starts, float before) {
    auto out = std::make_unique<TRITONBACKEND_Request>();
    out->in_sequence = true;
    out->inputs.push_back(float_input("x", {1, 1}, {x}));
    out->inputs.push_back(float_input("start", {1, 1}, {starts ? 1.0F : 0.0F}));
    out->inputs.push_back(float_input("total_before", {1, 1}, {before}));
    out->outputs = {"y"};
    return out;
}

TEST(TritonSequence, StatesGoToTheNextRequestOfTheirOwnSequence) {
    Scene scene(sum_engine(), sequence_config);
    ASSERT_EQ(scene.start(), "");
    float totals[] = {-7, -7}; // left by others: the start leaves them out
    for (int step = 0; step < 3; ++step) {
        std::unique_ptr<TRITONBACKEND_Request> a = sum_request(1, step == 0, totals[0]);
        std::unique_ptr<TRITONBACKEND_Request> b = sum_request(5, step == 0, totals[1]);
        ASSERT_EQ(scene.execute({a.get(), b.get()}), "");
        ASSERT_FALSE(a->answered_error) << a->text;
        ASSERT_FALSE(b->answered_error) << b->text;
        EXPECT_EQ(a->results.size(), 1U); // the state is no output of the response
        totals[0] = floats(a->states.at("total"))[0];
        totals[1] = floats(b->states.at("total"))[0];
        EXPECT_EQ(a->states.at("total").shape, (std::vector<int64_t>{1, 1}));
        EXPECT_EQ(totals[0], static_cast<float>(step + 1));
        EXPECT_EQ(totals[1], static_cast<float>(5 * (step + 1)));
        EXPECT_EQ(floats(a->results.at("y"))[0], 10 * totals[0]);
        EXPECT_EQ(floats(b->results.at("y"))[0], 10 * totals[1]);
    }
    EXPECT_EQ(scene.instances[0]->batches, 3U); // both sequences ran together
}

TEST(TritonSequence, StatesStayInMemoryOfTheGpu) {
    SimulatedGpu simulated;
    Scene scene(sum_engine(), sequence_config);
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(), "");
    std::shared_ptr<DeviceMemory> gpu = static_cast<Model*>(scene.model.state)->gpus().open(0);
    FakeHost::get().gpu_allocate = [&](size_t bytes) { return gpu->allocate(bytes); };
    std::unique_ptr<TRITONBACKEND_Request> first = sum_request(3, true, 0);
    first->state_memory = TRITONSERVER_MEMORY_GPU;
    ASSERT_EQ(scene.execute({first.get()}), "");
    ASSERT_FALSE(first->answered_error) << first->text;
    const TRITONBACKEND_Output& state = first->states.at("total");
    ASSERT_EQ(state.memory, TRITONSERVER_MEMORY_GPU);
    std::unique_ptr<TRITONBACKEND_Request> next = sum_request(4, false, 0);
    next->inputs[2].memory = TRITONSERVER_MEMORY_GPU;
    next->inputs[2].gpu_buffers = {{state.gpu_buffer, sizeof(float)}};
    ASSERT_EQ(scene.execute({next.get()}), "");
    ASSERT_FALSE(next->answered_error) << next->text;
    EXPECT_EQ(floats(next->results.at("y"))[0], 70);
    FakeHost::get().gpu_allocate = nullptr;
}

TEST(TritonSequence, AFailedRequestLeavesTheStateAsItWas) {
    Scene scene(sum_engine(), sequence_config);
    ASSERT_EQ(scene.start(), "");
    std::unique_ptr<TRITONBACKEND_Request> wrong = sum_request(1, false, 2);
    wrong->outputs = {"y", "z"};
    ASSERT_EQ(scene.execute({wrong.get()}), "");
    EXPECT_EQ(wrong->text, "the engine has no output 'z'");
    EXPECT_TRUE(wrong->states.empty());
    std::unique_ptr<TRITONBACKEND_Request> alone = sum_request(1, false, 2);
    alone->in_sequence = false;
    ASSERT_EQ(scene.execute({alone.get()}), "");
    EXPECT_EQ(alone->text, "the request has no sequence");
}

TEST(TritonSequence, EachCallThatFailsLeavesTheOldStateOrTheNew) {
    Scene scene(sum_engine(), sequence_config);
    ASSERT_EQ(scene.start(), "");
    FakeHost& host = FakeHost::get();
    bool reached = true;
    for (int64_t call = 1; reached; ++call) {
        std::unique_ptr<TRITONBACKEND_Request> r = sum_request(1, false, 2);
        host.calls = 0;
        host.failing_call = call;
        std::string text = scene.execute({r.get()});
        reached = host.calls >= call;
        host.failing_call = 0;
        EXPECT_EQ(r->responses, text.empty() ? 1 : 0);
        if (r->responses == 1 && !r->answered_error) {
            EXPECT_EQ(floats(r->states.at("total"))[0], 3);
        } else {
            EXPECT_TRUE(r->states.empty());
            EXPECT_NE((text + r->text).find("planted in TRITON"), std::string::npos);
        }
        ASSERT_LT(call, 100);
    }
}

TEST(TritonSequence, TheServersOwnTensorsAreNotClients) {
    Scene scene(sum_engine(), sequence_config);
    ASSERT_EQ(scene.start(), "");
    EXPECT_NE(scene.model.config.find(R"("input":[{"name":"x")"), std::string::npos);
    EXPECT_NE(scene.model.config.find(R"("output":[{"name":"y")"), std::string::npos);
    EXPECT_EQ(scene.model.config.find(R"({"name":"total)"), std::string::npos);
}

struct WrongConfig {
    const char* json;
    const char* text;
};
const WrongConfig wrong_configs[] = {
    {R"({"max_batch_size":4,"sequence_batching":{"control_input":[{"name":"begin","control":[
        {"kind":"CONTROL_SEQUENCE_START","fp32_false_true":[0,1]}]}]}})",
     "configured control input 'begin' is none of the engine's, which are: "},
    {R"({"max_batch_size":4,"sequence_batching":{"control_input":[{"name":"start","control":[
        {"kind":"CONTROL_SEQUENCE_CORRID","data_type":"TYPE_UINT64"}]}]}})",
     "control input 'start': data_type TYPE_UINT64 is configured, the engine has TYPE_FP32"},
    {R"({"max_batch_size":4,"sequence_batching":{"state":[{"input_name":"total_before",
        "output_name":"total","data_type":"TYPE_FP32","dims":[2]}]}})",
     "state input 'total_before': shape [-1,2] is configured (the first size are the rows of a "
     "batch), the engine has [-1,1]"},
    {R"({"max_batch_size":4,"sequence_batching":{"state":[{"input_name":"total_before",
        "output_name":"sum","data_type":"TYPE_FP32","dims":[1]}]}})",
     "configured state output 'sum' is none of the engine's, which are: "},
};

TEST(TritonSequence, AConfigurationThatDoesNotFitIsRefusedByName) {
    for (const WrongConfig& wrong : wrong_configs) {
        Scene scene(sum_engine(), wrong.json);
        ASSERT_EQ(scene.start_backend(), "");
        std::string text = scene.start_model();
        EXPECT_NE(text.find(wrong.text), std::string::npos) << text;
    }
}

} // namespace
} // namespace ingot::triton
