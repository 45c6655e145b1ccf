// SPDX-License-Identifier: Apache-2.0
// Defaults of inputs travel in an engine, and those that are damaged are refused.
#include "engine/properties.h"
#include "error_of.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

std::shared_ptr<const Engine> engine(const char* type, Properties metadata) {
    Graph g("defaults");
    Value x = g.add_input("x", parse_type(type));
    g.add_output("y", ops::add(g, x, x));
    return Engine::create(std::move(g), {}, std::move(metadata));
}

TEST(InputDefaults, AreTheSameAfterTheFile) {
    const std::pair<const char*, Tensor> cases[] = {
        {"f32[2]", Tensor::of<double>(DType::F32, {2}, std::vector{1.5, -2.0})},
        {"f32[]", Tensor::scalar(DType::F32, 0.1)},
        {"i64[n,2]",
         Tensor::of<int64_t>(DType::I64, {3, 2}, std::vector<int64_t>{1, -1, 2, 3, 4, 5})},
        {"f32[n]", Tensor::zeros(DType::F32, {0})},
    };
    for (const auto& [type, value] : cases) {
        Properties metadata;
        put_input_default("x", value, metadata);
        AlignedBytes bytes = engine_bytes(*engine(type, metadata));
        auto loaded = Engine::load(std::as_bytes(std::span(bytes)), nullptr);
        EXPECT_TRUE(input_default(*loaded, 0) == value) << type << ' ' << metadata.begin()->second;
    }
    EXPECT_FALSE(input_default(*engine("f32[2]", {}), 0).defined());
}

TEST(InputDefaults, ThatDoNotFitAreRefused) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "it is no type, shape and bytes"},
        {"f32", "it is no type, shape and bytes"},
        {"] [f32", "it is no type, shape and bytes"},
        {"f16[2] 00000000", "it is f16[2], and the input is f32[2]"},
        {"f32[3] 000000000000000000000000", "its shape is [3], and the input is f32[2]"},
        {"f32[2,1] 0000000000000000", "its shape is [2,1], and the input is f32[2]"},
        {"f32[-2] 0000000000000000", "its shape is [-2], and the input is f32[2]"},
        {"f32[2x] 0000000000000000", "its shape is [2x], and the input is f32[2]"},
        {"f32[2] 00000000", "it has 4 bytes, expected 8"},
        {"f32[2] 000000000000000g", "byte 7 is no hexadecimal number"},
    };
    for (const auto& [text, expected] : cases) {
        auto made = engine("f32[2]", {{"default.x", text}});
        std::string error = test::error_of([&] { input_default(*made, 0); });
        EXPECT_NE(error.find(str("default of input 'x': ", expected)), std::string::npos)
            << text << ": " << error;
    }
    auto open = engine("f32[n]", {{"default.x", "f32[281474976710657] 00"}});
    EXPECT_NE(test::error_of([&] { input_default(*open, 0); }), "");
}

} // namespace
} // namespace ingot
