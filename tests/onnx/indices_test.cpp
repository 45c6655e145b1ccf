// SPDX-License-Identifier: Apache-2.0
// Indices outside of an inner axis: an error, never the element of another row.
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

using V = std::vector<double>;

/// The error of evaluating `n` on x:f32[2,3] and indices of the given shape; "" when it runs.
std::string outcome(const Node& n, std::vector<std::string> inputs,
                    const std::vector<ingot::Tensor>& in) {
    ingot::Graph g = import_verified(model(graph(std::move(inputs), {"y"}, {n}), 24));
    try {
        evaluate(g, in);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

ingot::Tensor matrix() {
    return floats({2, 3}, {0, 1, 2, 3, 4, 5});
}

void expect_outside(const std::string& text) {
    EXPECT_NE(text.find("is outside"), std::string::npos) << text;
}

TEST(IndicesOutside, ScatterElements) {
    Node n = node("ScatterElements", {"x", "i", "u"}, {"y"}, {int_of("axis", 1)});
    auto with = [&](int64_t index) {
        return outcome(n, {"x:f32[2,3]", "i:i64[1,1]", "u:f32[1,1]"},
                       {matrix(), integers({1, 1}, {index}), floats({1, 1}, V{9})});
    };
    EXPECT_EQ(with(2), "");
    EXPECT_EQ(with(-3), "");
    expect_outside(with(3)); // would be the first element of the next row
    expect_outside(with(-4));
}

TEST(IndicesOutside, ScatterNd) {
    Node n = node("ScatterND", {"x", "i", "u"}, {"y"});
    auto with = [&](int64_t row, int64_t column) {
        return outcome(n, {"x:f32[2,3]", "i:i64[1,2]", "u:f32[1]"},
                       {matrix(), integers({1, 2}, {row, column}), floats({1}, V{9})});
    };
    EXPECT_EQ(with(1, 2), "");
    EXPECT_EQ(with(-2, -3), "");
    expect_outside(with(0, 3));
    expect_outside(with(1, -4));
    expect_outside(with(2, 0));
}

TEST(IndicesOutside, GatherElementsAndGatherNd) {
    Node elements = node("GatherElements", {"x", "i"}, {"y"}, {int_of("axis", 1)});
    Node nd = node("GatherND", {"x", "i"}, {"y"});
    auto with = [&](int64_t index) {
        return outcome(elements, {"x:f32[2,3]", "i:i64[1,1]"},
                       {matrix(), integers({1, 1}, {index})});
    };
    EXPECT_EQ(with(2), "");
    expect_outside(with(3));
    expect_outside(with(-4));
    expect_outside(outcome(nd, {"x:f32[2,3]", "i:i64[1,2]"}, {matrix(), integers({1, 2}, {0, 3})}));
}

TEST(IndicesOutside, TensorScatter) {
    Node n = node("TensorScatter", {"x", "u", "w"}, {"y"}, {int_of("axis", 1)});
    auto with = [&](int64_t at) {
        return outcome(n, {"x:f32[2,3,1]", "u:f32[2,2,1]", "w:i64[2]"},
                       {floats({2, 3, 1}, V(6)), floats({2, 2, 1}, V(4)), integers({2}, {at, 0})});
    };
    EXPECT_EQ(with(1), "");
    expect_outside(with(2)); // the second step would lie in the other sequence
    expect_outside(with(-1));
}

} // namespace

} // namespace ingot::onnx::test
