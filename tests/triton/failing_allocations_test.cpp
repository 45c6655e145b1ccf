// SPDX-License-Identifier: Apache-2.0
// Each allocation of the backend and of the library below it finds no memory in turn, while
// instances are made and while requests run: every request is answered and released once, or stays
// the server's; right answers stay right; nothing is leaked; the next attempt succeeds.
#include "base/allocation_count.h"
#include "tests/triton/scene.h"

#include <optional>

namespace ingot::triton {
namespace {

/// A configuration with members of every kind.
const char* const many_fields = R"({"name":"model","version_policy":{"latest":{"num_versions":1}},
    "dynamic_batching":{"default_queue_policy":{"timeout_action":"REJECT","max_queue_size":4},
    "priority_queue_policy":{}},"instance_group":[{"name":"a","kind":"KIND_CPU","count":1,
    "gpus":[],"passive":false,"profile":[]}],"optimization":{"graph":{"level":1},
    "execution_accelerators":{"gpu_execution_accelerator":[{"name":"tensorrt","parameters":
    {"precision_mode":"FP32"}}]}},"parameters":{"buckets":{"string_value":"1,2,4"}},
    "model_warmup":[{"name":"w","batch_size":1,"minimum_slot_utilization":0.5}]})";

/// Three requests in one call, during which the n-th allocation fails. Returns whether there was
/// such a one.
bool run_with_failure(Scene& scene, int64_t n) {
    Alive before;
    std::vector<std::unique_ptr<TRITONBACKEND_Request>> requests;
    std::vector<TRITONBACKEND_Request*> list;
    for (unsigned i = 0; i < 3; ++i) {
        requests.push_back(row_request(1 + i % 2, i));
        list.push_back(requests.back().get());
    }
    fail_allocation(n);
    TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceExecute(
        scene.instances[0].get(), list.data(), static_cast<uint32_t>(list.size()));
    bool reached = allocation_failed();
    fail_allocation(0);
    std::string text = text_of(error);
    for (const auto& r : requests) {
        EXPECT_EQ(r->responses, text.empty() ? 1 : 0) << n;
        EXPECT_EQ(r->released, text.empty() ? 1 : 0) << n;
        if (r->responses == 1 && !r->answered_error) {
            expect_right(*r);
        }
        EXPECT_TRUE(!r->answered_error || !r->text.empty()) << n;
    }
    EXPECT_TRUE(Alive() == before) << "allocation " << n << ": " << text;
    return reached;
}

/// Two instances are made while the n-th allocation fails.
bool load_with_failure(const std::string& engine, TRITONSERVER_InstanceGroupKind kind, int64_t n) {
    Alive before;
    bool reached = false;
    {
        Scene scene(engine);
        scene.kind = kind;
        EXPECT_EQ(scene.start(0), "");
        std::vector<std::unique_ptr<TRITONBACKEND_ModelInstance>> made;
        for (int i = 0; i < 2; ++i) {
            made.push_back(std::make_unique<TRITONBACKEND_ModelInstance>());
            made.back()->model = &scene.model;
            made.back()->kind = kind;
        }
        TRITONSERVER_Error* errors[2] = {};
        fail_allocation(n);
        for (size_t i = 0; i < 2; ++i) {
            errors[i] = TRITONBACKEND_ModelInstanceInitialize(made[i].get());
        }
        reached = allocation_failed();
        fail_allocation(0);
        for (size_t i = 0; i < 2; ++i) {
            if (text_of(errors[i]).empty()) {
                scene.instances.push_back(std::move(made[i]));
            } else {
                EXPECT_EQ(made[i]->state, nullptr) << n;
            }
        }
        EXPECT_TRUE(reached || scene.instances.size() == 2) << n;
        if (!scene.instances.empty()) {
            EXPECT_FALSE(run_with_failure(scene, 0)); // what it serves is right
        }
        scene.stop();
    }
    EXPECT_TRUE(Alive() == before) << "allocation " << n;
    return reached;
}

class TritonFailingAllocations : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        if (GetParam()) {
            simulated_.emplace();
            kind_ = TRITONSERVER_INSTANCEGROUPKIND_GPU;
        }
    }
    std::optional<SimulatedGpu> simulated_;
    TRITONSERVER_InstanceGroupKind kind_ = TRITONSERVER_INSTANCEGROUPKIND_CPU;
};

TEST_P(TritonFailingAllocations, EachWhileRequestsRun) {
    Scene scene(row_engine(4));
    scene.kind = kind_;
    ASSERT_EQ(scene.start(1), "");
    run_with_failure(scene, 0);
    int64_t n = 1;
    int64_t live = 0;
    while (run_with_failure(scene, n)) {
        live = n == 1 ? live_allocations() : live;
        ++n;
    }
    EXPECT_GT(n, 20); // a batch has that many at least
    EXPECT_LT(live_allocations() - live, 10);
    EXPECT_FALSE(run_with_failure(scene, 0));
}

TEST_P(TritonFailingAllocations, EachWhileInstancesAreMade) {
    std::string engine = row_engine(4);
    load_with_failure(engine, kind_, 0); // state of the process
    int64_t n = 1;
    while (load_with_failure(engine, kind_, n)) {
        ++n;
    }
    EXPECT_GT(n, 50);
    load_with_failure(engine, kind_, 0);
}

/// A model is loaded while the n-th allocation fails: its configuration is read and completed, its
/// engine is loaded. The server holds what it held before, or the model.
bool configure_with_failure(const std::string& engine, TRITONSERVER_InstanceGroupKind kind,
                            int64_t n, int& refused) {
    Alive before;
    bool reached = false;
    {
        Scene scene(engine, many_fields);
        scene.kind = kind;
        EXPECT_EQ(scene.start_backend(), "");
        fail_allocation(n);
        TRITONSERVER_Error* error = TRITONBACKEND_ModelInitialize(&scene.model);
        reached = allocation_failed();
        fail_allocation(0);
        std::string text = text_of(error);
        if (text.empty()) {
            EXPECT_NE(scene.model.config.find(R"("minimum_slot_utilization":"0.5")"),
                      std::string::npos);
            EXPECT_NE(scene.model.config.find(R"("name":"twice")"), std::string::npos);
        } else {
            ++refused;
            EXPECT_EQ(scene.model.state, nullptr) << n;
            EXPECT_EQ(text_of(TRITONBACKEND_ModelInitialize(&scene.model)), "") << n;
        }
        EXPECT_EQ(scene.start_instances(1), "") << n;
        EXPECT_FALSE(run_with_failure(scene, 0));
        scene.stop();
    }
    EXPECT_TRUE(Alive() == before) << "allocation " << n;
    return reached;
}

TEST_P(TritonFailingAllocations, EachWhileAModelIsLoaded) {
    std::string engine = row_engine(4);
    int refused = 0;
    configure_with_failure(engine, kind_, 0, refused);
    EXPECT_EQ(refused, 0);
    int64_t n = 1;
    while (configure_with_failure(engine, kind_, n, refused)) {
        ++n;
    }
    EXPECT_GT(refused, 50);
}

INSTANTIATE_TEST_SUITE_P(Devices, TritonFailingAllocations, testing::Bool(), [](const auto& p) {
    return std::string(p.param ? "SimulatedGpu" : "Cpu");
});

} // namespace
} // namespace ingot::triton
