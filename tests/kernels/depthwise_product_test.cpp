// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one behind it in one launch.
#include "base/text.h"
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

/// The depthwise convolution `first`, a map, `results` results of a pointwise one, and a map.
struct PairCase {
    ConvCase first;
    int64_t results = 40;
    bool middle = true;   // x * sigmoid(x), with a bias and a scale of f32
    bool residual = true; // and a bias
    bool constants = false;
    DType weights = DType::F16;
};

Value by_channel(Graph& g, const PairCase& c, DType t, const Dim& channels) {
    Dims dims = {channels, 1, 1};
    return c.constants ? ops::constant(g, random_elements(t, {channels.value(), 1, 1}, 3))
                       : g.add_input("b", {t, dims});
}

Value middle_of(Graph& g, const PairCase& c, Value y) {
    Type t = g.type(y);
    Value bias = by_channel(g, c, t.dtype, t.dims[1]);
    Value scale = by_channel(g, c, DType::F32, t.dims[1]);
    Expr e;
    int sum = e.op(ExprOp::Add, e.in(0, t.dtype), e.in(1, t.dtype));
    sum = e.op(ExprOp::Mul, sum, e.in(2, DType::F32));
    e.op(ExprOp::Mul, sum, e.op(ExprOp::Sigmoid, sum));
    return ops::map(g, e, t.dtype, std::array{y, bias, scale});
}

Graph pair_graph(const PairCase& c) {
    Graph g;
    Type x = parse_type(c.first.x);
    Type w = parse_type(c.first.w);
    ops::Conv a;
    a.strides = c.first.strides;
    a.dilations = c.first.dilations;
    a.low = to_dims(c.first.low);
    a.high = to_dims(c.first.high);
    a.groups = c.first.groups;
    a.dtype = x.dtype;
    auto weights = [&](const char* name, const Type& t) {
        return c.constants ? ops::constant(g, random_elements(t.dtype, *as_const(t.dims), 5))
                           : g.add_input(name, t);
    };
    Value vx = g.add_input("x", x);
    Value y = ops::conv(g, a, vx, weights("w", w));
    y = c.middle ? middle_of(g, c, y) : y;
    ops::Conv one;
    one.strides = one.dilations = {1, 1};
    one.low = one.high = {0, 0};
    one.dtype = x.dtype;
    y = ops::conv(g, one, y, weights("v", {x.dtype, {c.results, x.dims[1], 1, 1}}));
    if (c.residual) {
        Type t = g.type(y);
        Value bias = by_channel(g, c, t.dtype, t.dims[1]);
        Value r = g.add_input("residual", t);
        Expr e;
        int sum = e.op(ExprOp::Add, e.in(0, t.dtype), e.in(1, t.dtype));
        sum = e.op(ExprOp::Add, sum, e.in(2, t.dtype));
        e.op(ExprOp::Max, sum, e.constant(compute_type(t.dtype), 0));
        y = ops::map(g, e, t.dtype, std::array{y, bias, r});
    }
    g.add_output("z", y);
    return g;
}

FamilyOptions family() {
    FamilyOptions o;
    o.family = "depthwise_product";
    return o;
}

bool ran_pair(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), "depthwise_product_" + name) != names.end();
}

TEST(DepthwiseProduct, EveryTile) {
    // 24 channels are a step and a half; positions and columns end within tiles.
    std::vector<std::string> names =
        sweep(pair_graph({.first = {.x = "f16[2,24,9,11]", .w = "f16[24,1,3,3]", .groups = 24},
                          .results = 72}),
              family());
    for (const char* tile : {"4x64", "8x128", "16x64", "32x32", "64x64"}) {
        EXPECT_TRUE(ran_pair(names, tile)) << tile;
    }
    EXPECT_TRUE(ran(names, "apart_"));
}

TEST(DepthwiseProduct, ApartWhereABatchHasManyElements) {
    PairCase c{.first = {.x = "f16[n,512,2,2]", .w = "f16[512,1,3,3]", .groups = 512},
               .results = 8};
    Graph g = pair_graph(c);
    FamilyOptions o = family();
    o.symbols = {{"n", 129}};
    std::vector<std::string> names = tactic_names(g, o);
    ASSERT_EQ(names.size(), 1);
    EXPECT_TRUE(names[0].starts_with("apart_"));
    EXPECT_EQ(expect_family(g, o).tactic, names[0]);
}

TEST(DepthwiseProduct, WindowsAndSteps) {
    FamilyOptions o = family();
    o.tactic = "depthwise_product_8x64";
    auto runs = [&](const PairCase& c) {
        EXPECT_EQ(expect_family(pair_graph(c), o).tactic, o.tactic);
        ++o.seed;
    };
    runs({.first = {.x = "bf16[1,16,12,7]", .w = "bf16[16,1,3,3]", .strides = {2, 2}, .groups = 16},
          .results = 33});
    runs({.first = {.x = "f16[3,32,9,8]",
                    .w = "f16[32,1,3,2]",
                    .strides = {1, 2},
                    .dilations = {2, 3},
                    .low = {0, 3},
                    .high = {3, 0},
                    .groups = 32},
          .middle = false});
    runs(
        {.first =
             {.x = "f16[1,8,5,4]", .w = "f16[8,1,1,1]", .low = {0, 0}, .high = {0, 0}, .groups = 8},
         .results = 7,
         .residual = false});
    runs({.first = {.x = "f16[1,40,3,50]",
                    .w = "f16[40,1,1,9]",
                    .low = {0, 4},
                    .high = {0, 4},
                    .groups = 40},
          .results = 200,
          .constants = true});
}

TEST(DepthwiseProduct, RowsWithGapsAndOtherOrders) {
    FamilyOptions o = family();
    o.tactic = "depthwise_product_16x64";
    PairCase c{.first = {.x = "f16[2,24,6,10]", .w = "f16[24,1,3,3]", .groups = 24}};
    expect_family(pair_graph(c), o); // row major: the input is asked for with channels last
    o.strided = true;
    expect_family(pair_graph(c), o);
    o.strided = false;
    o.orders = {{0, 2, 3, 1}, {2, 3, 1, 0}, {0, 1, 2},   {0, 1, 2},
                {0, 2, 3, 1}, {0, 1, 2},    {0, 2, 3, 1}};
    expect_family(pair_graph(c), o);
}

/// Whether the family refuses the group, for that reason.
bool refuses(const PairCase& c, std::string_view why) {
    std::optional<std::string> text = refusal(pair_graph(c), "depthwise_product");
    return text && text->find(why) != std::string::npos;
}

TEST(DepthwiseProduct, TakesWhatFits) {
    PairCase c{.first = {.x = "f16[1,24,9,9]", .w = "f16[24,1,3,3]", .groups = 24}};
    EXPECT_EQ(refusal(pair_graph(c), "depthwise_product"), std::nullopt);
    PairCase other = c;
    other.results = 321;
    EXPECT_TRUE(refuses(other, "no pointwise convolution of few results behind"));
    other = c;
    other.first.groups = 12;
    other.first.w = "f16[24,2,3,3]";
    EXPECT_TRUE(refuses(other, "no depthwise convolution of whole vectors of channels"));
    other = c;
    other.first = {.x = "f16[1,20,9,9]", .w = "f16[20,1,3,3]", .groups = 20};
    EXPECT_TRUE(refuses(other, "no depthwise convolution of whole vectors of channels"));
    other.first = {.x = "f32[1,24,9,9]", .w = "f32[24,1,3,3]", .groups = 24};
    EXPECT_TRUE(refuses(other, "no pictures of 16-bit floats"));
    other.first = {.x = "f16[1,24,9,9]", .w = "f16[24,1,5,5]", .groups = 24};
    EXPECT_TRUE(refuses(other, "a large window"));
    other.first = {.x = "f16[8,24,40,40]", .w = "f16[24,1,3,3]", .groups = 24};
    EXPECT_TRUE(refuses(other, "many elements before the pointwise convolution"));
    other.first = {.x = "f16[n,24,40,40]", .w = "f16[24,1,3,3]", .groups = 24};
    EXPECT_EQ(refusal(pair_graph(other), "depthwise_product"), std::nullopt);
}

/// Through the backend: both become one launch where the first has no other reader.
TEST(DepthwiseProduct, OneLaunchInTheBackend) {
    for (bool read_again : {false, true}) {
        Graph g = pair_graph({.first = {.x = "f16[1,24,9,9]", .w = "f16[24,1,3,3]", .groups = 24},
                              .constants = true});
        if (read_again) {
            const Node* map = nullptr;
            for (const Node& n : g.nodes()) {
                map = map == nullptr && n.is(map_def) ? &n : map;
            }
            g.add_output("middle", map->outputs[0]);
        }
        BackendRun run = expect_backend(g, {.tolerance = 6e-3});
        EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "depthwise_product"),
                  read_again ? 0 : 1);
    }
}

/// A residual around the second convolution alone reads what the first made: that is in memory.
TEST(DepthwiseProduct, NotWithAResidualAroundTheSecond) {
    Graph g = pair_graph({.first = {.x = "f16[1,24,9,9]", .w = "f16[24,1,3,3]", .groups = 24},
                          .results = 24,
                          .residual = false,
                          .constants = true});
    const Node* map = nullptr;
    for (const Node& n : g.nodes()) {
        map = n.is(map_def) ? &n : map;
    }
    g.add_output("sum", ops::add(g, g.outputs()[0], map->outputs[0]));
    BackendRun run = expect_backend(g, {.tolerance = 6e-3});
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "depthwise_product"), 0);
}

} // namespace
} // namespace ingot::test
