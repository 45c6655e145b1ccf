// SPDX-License-Identifier: Apache-2.0
// Each call into the server fails in turn: every request is answered and released once, or stays
// the server's; right answers stay right; nothing is leaked.
#include "tests/triton/scene.h"

namespace ingot::triton {
namespace {

/// A server's life. Returns whether the planted failure was reached.
bool live(const std::string& engine, TRITONSERVER_InstanceGroupKind kind, int64_t failing_call) {
    Alive before;
    {
        Scene scene(engine);
        scene.kind = kind;
        FakeHost& host = FakeHost::get();
        host.failing_call = failing_call;
        TRITONBACKEND_BackendAttribute attributes;
        std::string text = scene.start(2);
        text += text_of(TRITONBACKEND_GetBackendAttribute(&scene.backend, &attributes));
        std::vector<std::unique_ptr<TRITONBACKEND_Request>> requests;
        for (unsigned i = 0; i < 3; ++i) {
            requests.push_back(row_request(1 + i, i));
        }
        if (scene.instances.size() == 2) {
            text += text_of(TRITONBACKEND_ModelInstanceReady(scene.instances[1].get()));
            std::string failed =
                scene.execute({requests[0].get(), requests[1].get(), requests[2].get()}, 1);
            for (const auto& r : requests) {
                // After an error the server answers and releases.
                EXPECT_EQ(r->responses, failed.empty() ? 1 : 0);
                EXPECT_EQ(r->released, failed.empty() ? 1 : 0);
                if (r->answered_error) {
                    EXPECT_NE(r->text.find("planted in TRITON"), std::string::npos) << r->text;
                } else if (r->responses == 1) {
                    expect_right(*r);
                }
            }
            text += failed;
        }
        bool reached = host.calls >= failing_call;
        // A failing call reports its error, except for metrics, statistics and log lines.
        if (!text.empty()) {
            EXPECT_NE(text.find("planted in TRITON"), std::string::npos) << text;
        }
        host.failing_call = 0;
        scene.stop();
        EXPECT_TRUE(Alive() == before) << "call " << failing_call << ": " << text;
        return reached;
    }
}

void fail_each_in_turn(TRITONSERVER_InstanceGroupKind kind) {
    std::string engine = row_engine(4);
    int64_t call = 1;
    while (live(engine, kind, call)) {
        ++call;
    }
    EXPECT_GT(call, 60); // the scene has that many calls at least
}

TEST(TritonFailingCalls, EachInTurn) {
    fail_each_in_turn(TRITONSERVER_INSTANCEGROUPKIND_CPU);
}

TEST(TritonFailingCalls, EachInTurnOnASimulatedGpu) {
    SimulatedGpu simulated;
    fail_each_in_turn(TRITONSERVER_INSTANCEGROUPKIND_GPU);
}

} // namespace
} // namespace ingot::triton
