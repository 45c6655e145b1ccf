// SPDX-License-Identifier: Apache-2.0
// A map by channel and the pointwise convolution behind it in one launch.
#include "base/text.h"
#include "kernels/conv/mapped_rows.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace ingot::test {
namespace {

/// max(x * scale + bias, 0) by channel, a pointwise convolution of `results` results, and a map.
struct MappedCase {
    std::string x = "f16[1,24,9,9]";
    int64_t results = 40;
    DType scale = DType::F32;
    bool sigmoid = false;  // of the map's sum, times the sum, in place of the maximum
    bool residual = false; // and a bias, behind the convolution
    bool constants = false;
    bool by_position = false; // the map's bias is of the whole shape
    int64_t kernel = 1;
    int64_t stride = 1;
    std::optional<DType> mapped = {}; // the map's type
};

class Maker {
public:
    explicit Maker(const MappedCase& c) : c_(c) {}

    Graph graph(Value x) {
        Value y = convolution(map(x));
        g_.add_output("z", c_.residual ? behind(y) : y);
        return std::move(g_);
    }
    Graph& g() { return g_; }
    Value layer(Value x) { return convolution(map(x)); }

private:
    Value by_channel(DType t, const Dim& channels, unsigned seed) {
        return c_.constants ? ops::constant(g_, random_elements(t, {channels.value(), 1, 1}, seed))
                            : g_.add_input("b", {t, {channels, 1, 1}});
    }

    Value map(Value x) {
        Type t = g_.type(x);
        Value scale = by_channel(c_.scale, t.dims[1], 3);
        Value bias = c_.by_position ? g_.add_input("p", t) : by_channel(t.dtype, t.dims[1], 4);
        Expr e;
        int sum = e.op(ExprOp::Mul, e.in(1, c_.scale), e.in(0, t.dtype));
        sum = e.op(ExprOp::Add, sum, e.in(2, t.dtype));
        c_.sigmoid ? e.op(ExprOp::Mul, sum, e.op(ExprOp::Sigmoid, sum))
                   : e.op(ExprOp::Max, sum, e.constant(DType::F32, 0));
        return ops::map(g_, e, c_.mapped.value_or(t.dtype), std::array{x, scale, bias});
    }

    Value convolution(Value y) {
        const Type& t = g_.type(y);
        ops::Conv one;
        one.strides = {c_.stride, c_.stride};
        one.dilations = {1, 1};
        one.low = one.high = {0, 0};
        one.dtype = t.dtype;
        Dims dims = {c_.results, t.dims[1], c_.kernel, c_.kernel};
        Value w = c_.constants ? ops::constant(g_, random_elements(t.dtype, *as_const(dims), 5))
                               : g_.add_input("w", {t.dtype, dims});
        return ops::conv(g_, one, y, w);
    }

    Value behind(Value y) {
        Type t = g_.type(y);
        Value bias = by_channel(t.dtype, t.dims[1], 6);
        Value r = g_.add_input("residual", t);
        Expr e;
        int sum = e.op(ExprOp::Add, e.in(0, t.dtype), e.in(1, t.dtype));
        sum = e.op(ExprOp::Add, sum, e.in(2, t.dtype));
        e.op(ExprOp::Max, sum, e.constant(compute_type(t.dtype), 0));
        return ops::map(g_, e, t.dtype, std::array{y, bias, r});
    }

    const MappedCase& c_;
    Graph g_;
};

Graph mapped_graph(const MappedCase& c) {
    Maker m(c);
    Value x = m.g().add_input("x", parse_type(c.x));
    return m.graph(x);
}

FamilyOptions family(std::string_view tile = {}) {
    FamilyOptions o;
    o.family = "mapped_conv";
    o.tactic = tile.empty() ? "" : str("mapped_conv_", tile);
    return o;
}

TEST(MappedConv, EveryTile) {
    // 40 channels are two steps and a half; positions and columns end within tiles.
    std::vector<std::string> names =
        sweep(mapped_graph({.x = "f16[2,40,9,11]", .results = 72, .residual = true}), family());
    for (const char* tile : {"8x16", "8x32", "8x64", "8x128", "16x16", "16x32", "16x64", "16x128",
                             "32x32", "32x64", "32x128", "64x32", "64x64"}) {
        EXPECT_TRUE(ran(names, str("mapped_conv_", tile))) << tile;
    }
    EXPECT_TRUE(ran(names, "apart_wgmma") && ran(names, "apart_mma"));
}

TEST(MappedConv, SizesAndTypes) {
    FamilyOptions o;
    auto runs = [&](const char* tile, const MappedCase& c) {
        unsigned seed = o.seed + 1;
        o = family(tile);
        o.seed = seed;
        EXPECT_EQ(expect_family(mapped_graph(c), o).tactic, o.tactic);
    };
    runs("8x32", {.x = "bf16[1,8,1,5]", .results = 7});
    runs("16x32", {.x = "f16[1,264,3,5]", .results = 33, .scale = DType::F16, .sigmoid = true});
    runs("8x16", {.x = "bf16[3,104,3,2]", .scale = DType::BF16, .residual = true});
    runs("32x64", {.x = "f16[2,72,7,5]", .results = 130, .residual = true, .constants = true});
    runs("64x32", {.x = "bf16[1,56,13,6]", .sigmoid = true, .residual = true});
    runs("16x16", {.x = "f16[1,1024,2,2]", .results = 20, .constants = true});
    runs("8x64", {.x = "f16[1,1024,3,3]", .results = 64});
}

TEST(MappedConv, RowsWithGapsAndOtherOrders) {
    FamilyOptions o = family("16x32");
    Graph g = mapped_graph({.x = "f16[2,24,6,10]", .residual = true});
    expect_family(g, o); // row major: the input is asked for with channels last
    o.orders = {{0, 2, 3, 1}, {0, 1, 2}, {0, 1, 2}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
    expect_family(g, o);
    o.strided = true;
    expect_family(g, o);
}

/// Maps without operands, and with one that all channels share.
TEST(MappedConv, OtherMaps) {
    for (bool scaled : {false, true}) {
        Graph g;
        std::vector<Value> in;
        Expr e;
        int at = scaled ? e.in(0, DType::F32) : -1;
        if (scaled) {
            in.push_back(g.add_input("s", parse_type("f32[]")));
        }
        in.push_back(g.add_input("x", parse_type("f16[1,16,5,5]")));
        int x = e.in(scaled ? 1 : 0, DType::F16);
        at = scaled ? e.op(ExprOp::Mul, at, x) : x;
        e.op(ExprOp::Max, at, e.constant(DType::F32, 0));
        Value y = ops::map(g, e, DType::F16, in);
        ops::Conv one;
        one.strides = one.dilations = {1, 1};
        one.low = one.high = {0, 0};
        one.dtype = DType::F16;
        g.add_output("z", ops::conv(g, one, y, g.add_input("w", parse_type("f16[24,16,1,1]"))));
        expect_family(g, family());
    }
}

TEST(MappedConv, NotANumberStays) {
    MappedCase c{.x = "f16[1,16,3,3]", .results = 8};
    Graph g = mapped_graph(c);
    FamilyOptions o = family();
    Tensor x = random_elements(DType::F16, {1, 16, 3, 3}, 1);
    x.set_f64(20, std::numeric_limits<double>::quiet_NaN());
    o.inputs = {x};
    FamilyRun run = expect_family(g, o);
    int64_t count = 0;
    for (int64_t i = 0; i < run.results[0].count(); ++i) {
        count += std::isnan(run.results[0].get_f64(i)) ? 1 : 0;
    }
    EXPECT_EQ(count, c.results); // those of one position
}

TEST(MappedConv, DynamicBatch) {
    Graph g = mapped_graph({.x = "f16[n,24,5,7]", .residual = true});
    for (int64_t n : {0, 1, 5}) {
        FamilyOptions o = family();
        o.symbols = {{"n", n}};
        expect_family(g, o);
    }
}

TEST(MappedConv, ApartWhereABatchHasManyElements) {
    Graph g = mapped_graph({.x = "f16[n,1024,2,2]", .results = 8});
    FamilyOptions o = family();
    o.symbols = {{"n", 64}};
    std::vector<std::string> names = tactic_names(g, o);
    EXPECT_TRUE(ran(names, "mapped_conv_") && ran(names, "apart_"));
    o.symbols = {{"n", 65}};
    names = tactic_names(g, o);
    ASSERT_EQ(names.size(), 1);
    EXPECT_TRUE(names[0].starts_with("apart_"));
    EXPECT_EQ(expect_family(g, o).tactic, names[0]);
}

/// Tiles with two sums of a result: what a batch-invariant engine chooses from.
TEST(MappedConv, TilesAddInOneOrder) {
    Graph g = mapped_graph({.x = "f16[2,104,5,7]", .results = 72});
    std::optional<Tensor> first;
    for (const char* tile : {"8x128", "16x128", "32x64", "32x128", "64x32", "64x64"}) {
        FamilyRun run = expect_family(g, family(tile));
        EXPECT_EQ(run.tactic, str("mapped_conv_", tile));
        first = first.value_or(run.results[0]);
        EXPECT_TRUE(run.results[0] == *first) << tile;
    }
}

TEST(MappedConv, TilesOfABatchInvariantEngine) {
    auto suited = [](int threads, bool invariant) {
        std::vector<kernels::RowTile> tiles = {{16, 32}, {16, 128}, {64, 64}};
        std::string names;
        for (const auto& t : kernels::suited_tiles(tiles, threads, 128, invariant)) {
            append(names, str(' ', t.bm, 'x', t.bn));
        }
        return names;
    };
    EXPECT_EQ(suited(256, false), " 16x32 16x128 64x64");
    EXPECT_EQ(suited(256, true), " 16x128 64x64");
    EXPECT_EQ(suited(128, true), " 16x128"); // warps with 64 columns have one set of sums
}

/// Whether the family refuses the group, for that reason.
bool refuses(const MappedCase& c, std::string_view why) {
    std::optional<std::string> text = refusal(mapped_graph(c), "mapped_conv");
    return text && text->find(why) != std::string::npos;
}

TEST(MappedConv, TakesWhatFits) {
    EXPECT_EQ(refusal(mapped_graph({}), "mapped_conv"), std::nullopt);
    EXPECT_EQ(refusal(mapped_graph({.x = "f16[n,24,100,100]"}), "mapped_conv"), std::nullopt);
    EXPECT_TRUE(refuses({.x = "f16[8,24,100,100]"}, "many elements"));
    EXPECT_TRUE(refuses({.x = "f32[1,24,9,9]"}, "no pictures of 16-bit floats"));
    EXPECT_TRUE(refuses({.x = "f16[1,20,9,9]"}, "no whole vectors of few channels"));
    EXPECT_TRUE(refuses({.x = "f16[1,1032,3,3]"}, "no whole vectors of few channels"));
    EXPECT_TRUE(refuses({.results = 513}, "no pointwise convolution of few results behind"));
    EXPECT_TRUE(refuses({.x = "f16[1,1024,3,3]", .results = 129},
                        "no pointwise convolution of few results behind"));
    EXPECT_TRUE(refuses({.kernel = 3}, "no pointwise convolution of few results behind"));
    EXPECT_TRUE(refuses({.stride = 2}, "no pointwise convolution of few results behind"));
    EXPECT_TRUE(refuses({.by_position = true}, "an operand of the map differs by position"));
    EXPECT_TRUE(refuses({.mapped = DType::F32}, "no operand of the map's type"));
}

/// Through the backend, from a part of a larger tensor: both become one launch where nothing else
/// reads the map.
TEST(MappedConv, OneLaunchInTheBackend) {
    for (bool read_again : {false, true}) {
        MappedCase c{.residual = true, .constants = true};
        Maker m(c);
        Graph& g = m.g();
        Value parts[] = {g.add_input("a", parse_type("f16[1,16,9,9]")),
                         g.add_input("b", parse_type("f16[1,8,9,9]"))};
        Graph whole = m.graph(ops::concat(g, parts, 1));
        if (read_again) {
            const Node* map = nullptr;
            for (const Node& n : whole.nodes()) {
                map = map == nullptr && n.is(map_def) ? &n : map;
            }
            whole.add_output("middle", map->outputs[0]);
        }
        for (bool invariant : {false, true}) {
            BackendRun run =
                expect_backend(whole, {.tolerance = 6e-3, .batch_invariant = invariant});
            EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "mapped_conv"),
                      read_again ? 0 : 1);
            // The fastest tile, and the fastest of those with two sums.
            const char* tile = invariant ? "mapped_conv_32x64" : "mapped_conv_8x16";
            EXPECT_EQ(join(run.implementations, " ").find(tile) != std::string::npos, !read_again)
                << join(run.implementations, " ");
        }
    }
}

/// Two layers of which each adds its results to the channels: the first one reads 80 of the 120
/// channels of a pixel, where they lie.
TEST(MappedConv, ReadsAPartOfALongerConcatenation) {
    MappedCase c{.results = 40, .constants = true};
    Maker m(c);
    Value x = m.layer(m.g().add_input("x", parse_type("f16[2,24,6,7]")));
    Value parts[] = {m.layer(x), m.layer(x), {}};
    Value both = ops::concat(m.g(), std::span(parts).first(2), 1);
    parts[2] = m.layer(both);
    Value whole = ops::concat(m.g(), parts, 1);
    BackendRun run = expect_backend(m.graph(whole), {.tolerance = 6e-3});
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "mapped_conv"), 5);
    // The input and the result are row major.
    EXPECT_LE(std::count(run.kernels.begin(), run.kernels.end(), "copy"), 2)
        << join(run.kernels, " ");
}

} // namespace
} // namespace ingot::test
