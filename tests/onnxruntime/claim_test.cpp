// SPDX-License-Identifier: Apache-2.0
// ingot::claimNodes(): each node judged by itself.
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "ingot.h"
#include "plugins/onnxruntime/proto.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace {

using ingot::ort::Proto;

class Quiet final : public nvinfer1::ILogger {
public:
    void log(Severity, const char* text) noexcept override { last = text; }
    std::string last;
};

Proto value_info(const char* name, int64_t columns) {
    Proto shape;
    shape.message(1, Proto().text(2, "n")).message(1, Proto().integer(1, columns));
    return Proto().text(1, name).message(
        2, Proto().message(1, Proto().integer(1, 1).message(2, shape)));
}

Proto node(const char* type, const char* domain, const char* in, const char* out) {
    return Proto().text(1, in).text(2, out).text(3, out).text(4, type).text(7, domain);
}

/// x -> Relu -> a -> Strange -> b -> Neg -> y.
std::string model(bool with_types) {
    Proto graph;
    graph.message(1, node("Relu", "", "x", "a"))
        .message(1, node("Strange", "com.example", "a", "b"))
        .message(1, node("Neg", "", "b", "y"))
        .text(2, "g")
        .message(11, value_info("x", 2))
        .message(12, value_info("y", 2));
    if (with_types) {
        graph.message(13, value_info("b", 2));
    }
    return Proto()
        .integer(1, 9)
        .message(7, graph)
        .message(8, Proto().text(1, "").integer(2, 17))
        .message(8, Proto().text(1, "com.example").integer(2, 1))
        .bytes();
}

class ClaimNodes : public testing::Test {
protected:
    ClaimNodes()
        : builder(nvinfer1::createInferBuilder(logger)), network(builder->createNetworkV2(0)),
          parser(nvonnxparser::createParser(*network, logger)) {}

    std::map<int64_t, std::string> verdicts(const std::string& bytes) {
        EXPECT_TRUE(parser->loadModelProto(bytes.data(), bytes.size())) << logger.last;
        std::map<int64_t, std::string> out;
        auto take = [](int64_t node, const char* reason, void* user) {
            (*static_cast<std::map<int64_t, std::string>*>(user))[node] =
                reason == nullptr ? "yes" : reason;
        };
        EXPECT_TRUE(ingot::claimNodes(*parser, take, &out)) << logger.last;
        EXPECT_EQ(network->getNbLayers(), 0);
        return out;
    }

    Quiet logger;
    std::unique_ptr<nvinfer1::IBuilder> builder;
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
    std::unique_ptr<nvonnxparser::IParser> parser;
};

TEST_F(ClaimNodes, WhatIsBehindARefusedNodeIsJudgedByTheTypeThatTheModelSays) {
    auto v = verdicts(model(true));
    ASSERT_EQ(v.size(), 3U);
    EXPECT_EQ(v[0], "yes");
    EXPECT_NE(v[1].find("operator"), std::string::npos) << v[1];
    EXPECT_EQ(v[2], "yes");
}

TEST_F(ClaimNodes, WithoutATypeItIsRefusedForThat) {
    auto v = verdicts(model(false));
    EXPECT_EQ(v[0], "yes");
    EXPECT_EQ(v[2], "input 'b': its type is not known, since the node that computes it is not "
                    "supported");
}

TEST_F(ClaimNodes, WithoutAModelThereIsAnError) {
    auto take = [](int64_t, const char*, void*) {};
    EXPECT_FALSE(ingot::claimNodes(*parser, take, nullptr));
    EXPECT_NE(logger.last.find("there is no model"), std::string::npos) << logger.last;
    std::string bytes = model(true);
    ASSERT_TRUE(parser->loadModelProto(bytes.data(), bytes.size()));
    EXPECT_FALSE(ingot::claimNodes(*parser, nullptr, nullptr));
    EXPECT_NE(logger.last.find("verdict is nullptr"), std::string::npos) << logger.last;
}

} // namespace
