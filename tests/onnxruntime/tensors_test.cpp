// SPDX-License-Identifier: Apache-2.0
// ingot::visitTensors(): the constants of a model.
#include "NvInfer.h"
#include "ingot.h"
#include "plugins/onnxruntime/proto.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace {

using ingot::ort::Proto;

class Quiet final : public nvinfer1::ILogger {
public:
    void log(Severity, const char* text) noexcept override { last = text; }
    std::string last;
};

struct Seen {
    int32_t type = 0;
    std::vector<int64_t> dims;
    std::string data;
    bool is_missing = false;
    std::string missing;
};

Proto tensor(const char* name, int64_t type, int64_t size) {
    return Proto().integer(1, size).integer(2, type).text(8, name);
}

std::string model_of(const Proto& graph) {
    return Proto()
        .integer(1, 9)
        .message(7, graph)
        .message(8, Proto().text(1, "").integer(2, 17))
        .bytes();
}

std::map<std::string, Seen> visited(const std::string& model, const char* folder, Quiet& logger) {
    std::map<std::string, Seen> out;
    auto take = [](const ingot::ModelTensor& t, void* user) {
        auto& seen = (*static_cast<std::map<std::string, Seen>*>(user))[t.name];
        seen.type = t.type;
        seen.dims.assign(t.dims, t.dims + t.nbDims);
        seen.is_missing = t.data == nullptr;
        seen.missing = t.missing == nullptr ? "" : t.missing;
        if (t.data != nullptr) {
            seen.data.assign(static_cast<const char*>(t.data), t.bytes);
        }
    };
    EXPECT_TRUE(ingot::visitTensors(logger, model.data(), model.size(), folder, take, &out))
        << logger.last;
    return out;
}

/// An initializer, one of external data, a Constant node, and an If whose body has both.
std::string whole_model() {
    Proto constant;
    constant.text(2, "c")
        .text(4, "Constant")
        .message(5, Proto().text(1, "value_floats").real(7, 1.5F).integer(20, 6));
    Proto body;
    body.message(5, tensor("inner", 3, 4).text(9, "abcd"))
        .text(2, "body")
        .message(12, Proto().text(1, "inner"));
    Proto node;
    node.text(1, "x").text(2, "y").text(4, "If").message(
        5, Proto().text(1, "then_branch").message(6, body).integer(20, 5));
    Proto away = tensor("away", 1, 2);
    away.message(13, Proto().text(1, "location").text(2, "none.bin")).integer(14, 1);
    Proto graph;
    graph.message(1, constant)
        .message(1, node)
        .text(2, "g")
        .message(5, tensor("w", 22, 4).text(9, "\x21\x43"))
        .message(5, away)
        .message(12, Proto().text(1, "y"));
    return model_of(graph);
}

TEST(VisitTensors, TellsInitializersConstantsAndThoseOfBodies) {
    Quiet logger;
    auto seen = visited(whole_model(), "", logger);
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_EQ(seen["w"].type, 22); // INT4: two in a byte
    EXPECT_EQ(seen["w"].dims, std::vector<int64_t>({4}));
    EXPECT_EQ(seen["w"].data, "\x21\x43");
    EXPECT_EQ(seen["inner"].data, "abcd");
    EXPECT_EQ(seen["c"].dims, std::vector<int64_t>({1}));
    float value = 0;
    ASSERT_EQ(seen["c"].data.size(), sizeof(value));
    std::memcpy(&value, seen["c"].data.data(), sizeof(value));
    EXPECT_EQ(value, 1.5F);
}

TEST(VisitTensors, SaysWhyDataIsMissing) {
    Quiet logger;
    auto seen = visited(whole_model(), "/nonexistent", logger);
    EXPECT_TRUE(seen["away"].is_missing);
    EXPECT_NE(seen["away"].missing.find("/nonexistent"), std::string::npos) << seen["away"].missing;
}

TEST(VisitTensors, RefusesWhatIsNoModel) {
    Quiet logger;
    auto take = [](const ingot::ModelTensor&, void*) { FAIL(); };
    EXPECT_FALSE(ingot::visitTensors(logger, "\xff\xff", 2, "", take, nullptr));
    EXPECT_NE(logger.last.find("visitTensors: "), std::string::npos) << logger.last;
    EXPECT_FALSE(ingot::visitTensors(logger, nullptr, 0, "", take, nullptr));
    EXPECT_FALSE(ingot::visitTensors(logger, "x", 1, "", nullptr, nullptr));
}

} // namespace
