// SPDX-License-Identifier: Apache-2.0
// Rows of odd lengths begin at multiples of 16 bytes where products read them, and the results are
// those of dense rows.
#include "kernels/harness.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

Value layer(Graph& g, Value x, int64_t depth, int64_t columns, DType t = DType::F16) {
    Dot d;
    d.a_contract = {g.type(x).rank() - 1};
    d.b_contract = {0};
    d.dtype = t;
    Value w = ops::constant(g, random_elements(t, {depth, columns}, 5, -0.2, 0.2));
    Value bias = ops::constant(g, random_elements(t, {columns}, 6));
    return ops::add(g, g.add1(dot_def, d, {x, w}), bias);
}

bool all_products_by(const BackendRun& run, std::string_view name) {
    for (size_t i = 0; i < run.kernels.size(); ++i) {
        bool product = run.kernels[i].find("dot") != std::string::npos;
        if (product && run.implementations[i].find(name) == std::string::npos) {
            return false;
        }
    }
    return true;
}

Value norm(Graph& g, Value x, int64_t columns) {
    ops::LayerNorm a;
    a.axis = g.type(x).rank() - 1;
    Value scale = ops::constant(g, random_elements(DType::F16, {columns}, 8, 0.5, 1.5));
    return ops::layer_norm(g, a, x, scale, {});
}

/// Norms, products, a residual, a window of what was written, and a result that is an output.
TEST(AlignedRows, OfTransformers) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        Graph g;
        Value x = g.add_input("x", parse_type("f16[2,96,40]"));
        Value first = layer(g, x, 40, 60);
        Value hidden = ops::maximum(g, layer(g, norm(g, first, 60), 60, 100), 0.0);
        Value sum = ops::add(g, layer(g, hidden, 100, 60), first);
        // Windows of 8 by 2 positions.
        Value windows = ops::reshape(g, sum, {2, 12, 8, 60});
        windows = ops::permute(g, windows, {0, 2, 1, 3});
        windows = ops::reshape(g, windows, {16, 12, 60});
        g.add_output("y", layer(g, windows, 60, 36));
        g.add_output("z", sum);
        BackendRun run = expect_backend(g, {.cc = cc, .tolerance = 8e-3});
        EXPECT_TRUE(cc != 90 || all_products_by(run, "wgmma"));
    }
}

/// Heads of which a row has several.
TEST(AlignedRows, OfHeads) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,64,40]"));
    auto heads = [&] {
        Value h = ops::reshape(g, layer(g, x, 40, 90), {2, 64, 3, 30});
        return ops::permute(g, h, {0, 2, 1, 3});
    };
    ops::Attention a;
    a.scale = 0.18;
    Value q = heads();
    Value k = heads();
    Value v = heads();
    Value y = ops::permute(g, ops::attention(g, a, q, k, v), {0, 2, 1, 3});
    g.add_output("y", layer(g, ops::reshape(g, y, {2, 64, 90}), 90, 24));
    BackendRun run = expect_backend(g, {.cc = 90, .tolerance = 8e-3});
    EXPECT_TRUE(all_products_by(run, "wgmma"));
    EXPECT_FALSE(ran(run.kernels, "copy"));
}

/// An output is dense: nothing is copied for one product's sake.
TEST(AlignedRows, NotOfOutputs) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,96,40]"));
    Value first = layer(g, x, 40, 60);
    g.add_output("y", layer(g, first, 60, 24));
    g.add_output("z", first);
    BackendRun run = expect_backend(g, {.cc = 90, .tolerance = 8e-3});
    EXPECT_FALSE(ran(run.kernels, "copy"));
}

/// Parts of several sequences, which no single axis of rows walks.
TEST(AlignedRows, OfPartsOfSequences) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[3,90,64]"));
    Value gate = g.add_input("gate", parse_type("f16[3,1,72]"));
    Value all = ops::maximum(g, layer(g, x, 64, 64), 0.0);
    Value first = ops::mul(g, layer(g, ops::slice(g, all, 1, 0, 70), 64, 72), gate);
    g.add_output("y", first);
    g.add_output("z", layer(g, ops::slice(g, all, 1, 70, 20), 64, 40));
    BackendRun run = expect_backend(g, {.cc = 90, .tolerance = 8e-3});
    EXPECT_FALSE(ran(run.kernels, "copy"));
    EXPECT_GE(std::count_if(run.implementations.begin(), run.implementations.end(),
                            [](const std::string& i) { return i.find("wgmma") != i.npos; }),
              2);
}

} // namespace
} // namespace ingot::test
