// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/serve_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::serving {
namespace {

TEST(ServePlan, devices_are_slices_and_gpus_without_any) {
    EXPECT_EQ(listed_devices("GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
                             "  MIG 3g.20gb     Device  0: (UUID: MIG-1)\n"
                             "  MIG 2g.10gb     Device  1: (UUID: MIG-2)\n"
                             "GPU 1: NVIDIA A100 (UUID: GPU-b)\n"),
              (std::vector<std::string>{"MIG-1", "MIG-2", "GPU-b"}));
    EXPECT_TRUE(listed_devices("").empty());
    EXPECT_TRUE(listed_devices("No devices were found\nGPU 0: (UUID: cut off").empty());
}

TEST(ServePlan, a_script_keeps_each_word_whole) {
    ChildCommand command{{"/bin/a b", "it's"}, {{"NAME", "x y"}}, {2, 3}};
    EXPECT_EQ(script_of(command), "#!/bin/sh\n# Written by ingot serve.\n"
                                  "exec env NAME='x y' taskset -c 2,3 \\\n"
                                  "    '/bin/a b' \\\n    'it'\\''s'\n");
}

TEST(ServePlan, endpoints_are_closed_unless_they_are_named) {
    ServePlan plan;
    plan.key = "k";
    plan.workers.resize(1);
    auto has = [&](const std::string& word) {
        std::vector<std::string> words = worker_command(plan, 0).arguments;
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    EXPECT_TRUE(
        has("--http-restricted-api=model-repository,shared-memory,trace,logging:ingot-key=k"));
    EXPECT_FALSE(has("--model-control-mode=explicit"));
    plan.open = {"shared-memory", "model-repository"};
    EXPECT_TRUE(has("--grpc-restricted-protocol=trace,logging:ingot-key=k"));
    EXPECT_TRUE(has("--model-control-mode=explicit") && has("--load-model=*"));
    EXPECT_EQ(random_key().size(), 32U);
    EXPECT_NE(random_key(), random_key());
}

TEST(ServePlan, workers_leave_requests_after_a_loss_to_the_proxy) {
    ServePlan plan;
    plan.workers.resize(1);
    std::vector<std::string> words = worker_command(plan, 0).arguments;
    for (const char* backend : {"ingot", "tensorrt", "onnxruntime"}) {
        EXPECT_EQ(std::count(words.begin(), words.end(),
                             std::string("--backend-config=") + backend + ",after-loss=hold"),
                  1);
    }
}

TEST(ServePlan, the_proxy_keeps_the_memory_of_its_buffers) {
    ServePlan plan;
    plan.folder = "f";
    EXPECT_NE(script_of(proxy_command(plan))
                  .find("MALLOC_MMAP_THRESHOLD_='33554432' MALLOC_TRIM_THRESHOLD_='268435456'"),
              std::string::npos)
        << script_of(proxy_command(plan));
}

TEST(ServePlan, requests_do_not_share_connections_with_the_workers) {
    ServePlan plan;
    plan.workers.resize(2);
    EXPECT_NE(proxy_config(plan).find("\n    .if version_atleast(2.8)\n"
                                      "        tune.h2.be.max-concurrent-streams 1\n"
                                      "    .endif\n"),
              std::string::npos);
}

} // namespace
} // namespace ingot::serving
