// SPDX-License-Identifier: Apache-2.0
// Layers that compute in another type than the build.
#include "ops/fence.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "passes/pipeline.h"
#include "workflow/error_message.h"
#include "workflow/layer_types.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// y = w2 (w1 x), layers "first" and "second".
Graph two_products() {
    Graph g;
    Value v = g.add_input("x", parse_type("f32[4,8]"));
    for (const char* name : {"first", "second"}) {
        g.set_origin(name);
        Tensor weights = Tensor::empty(DType::F32, {8, 8});
        for (int64_t i = 0; i < weights.count(); ++i) {
            weights.set_f64(i, static_cast<double>(i % 7) - 3);
        }
        Value w = ops::constant(g, weights);
        v = ops::matmul(g, v, w);
    }
    g.add_output("y", v);
    return g;
}

/// The types that the products of a half build compute in, in order.
std::vector<DType> types_of_products(const Graph& g) {
    PipelineOptions options;
    options.pass.precision = DType::F16;
    Graph narrow = run_aot_passes(g, options);
    std::vector<DType> types;
    for (const Node& n : narrow.nodes()) {
        EXPECT_FALSE(n.is(ops::fence_def));
        if (n.is(dot_def)) {
            types.push_back(narrow.type(n.inputs[0]).dtype);
        }
    }
    return types;
}

using Expected = std::vector<DType>;

TEST(LayerTypes, NamedLayersStayInFp32) {
    Graph g = two_products();
    auto held = [&g](const char* precisions, const char* results, LayerTypeRule rule) {
        return types_of_products(hold_layer_types(g, {precisions, results, rule}, DType::F16));
    };
    EXPECT_EQ(types_of_products(g), (Expected{DType::F16, DType::F16}));
    EXPECT_EQ(held("second:fp32", "", LayerTypeRule::Obey), (Expected{DType::F16, DType::F32}));
    EXPECT_EQ(held("", "first:fp32", LayerTypeRule::Prefer), (Expected{DType::F32, DType::F16}));
    EXPECT_EQ(held("*:fp32,first:fp16", "", LayerTypeRule::Obey),
              (Expected{DType::F16, DType::F32}));
    EXPECT_EQ(held("*:fp32", "", LayerTypeRule::Prefer), (Expected{DType::F32, DType::F32}));
    EXPECT_EQ(held("*:fp32", "", LayerTypeRule::None), (Expected{DType::F16, DType::F16}));
}

TEST(LayerTypes, WhatCannotBeHadIsSaid) {
    Graph g = two_products();
    auto hold = [&g](const char* precisions, DType build, LayerTypeRule rule) {
        return message([&] { hold_layer_types(g, {precisions, "", rule}, build); });
    };
    EXPECT_EQ(hold("third:fp32", DType::F16, LayerTypeRule::Obey),
              "--layerPrecisions: the model has no layer 'third'; ingot inspect lists the names");
    EXPECT_EQ(hold("first:bf16", DType::F16, LayerTypeRule::Obey),
              "--layerPrecisions: layer 'first' cannot be in bf16 in a build in f16; build with "
              "--bf16");
    EXPECT_EQ(hold("third:fp32,first:bf16", DType::F16, LayerTypeRule::Prefer), "no error");
    EXPECT_EQ(hold("first", DType::F16, LayerTypeRule::Prefer),
              "--layerPrecisions: 'first': expected NAME:fp32, NAME:fp16 or NAME:bf16");
    EXPECT_EQ(hold("first:int8", DType::F16, LayerTypeRule::Prefer),
              "--layerPrecisions: 'first:int8': expected NAME:fp32, NAME:fp16 or NAME:bf16");
}

} // namespace
} // namespace ingot::test
