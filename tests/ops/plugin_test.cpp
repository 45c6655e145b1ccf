// SPDX-License-Identifier: Apache-2.0
// Custom layers as ops: inconsistent lists are refused, signatures give types.
#include "base/error.h"
#include "ops/evaluator.h"
#include "ops/plugin.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Plugin one_result() {
    Plugin p;
    p.name = "P";
    p.dtypes = {"f32"};
    p.ranks = {1};
    p.sizes = {4};
    return p;
}

std::string error_of(const Plugin& p) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    try {
        g.add(plugin_def, p, std::array{x});
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(PluginOp, RefusesWhatDoesNotFitTogether) {
    struct Mistake {
        void (*change)(Plugin&);
        const char* message;
    };
    const Mistake mistakes[] = {
        {[](Plugin& p) { p.name = ""; }, "it has no name"},
        {[](Plugin& p) { p.generation = 4; }, "its generation is 4, expected 2 or 3"},
        {[](Plugin& p) { p.workspace = -1; }, "it wants -1 bytes of workspace"},
        {[](Plugin& p) { p.tactic = int64_t{1} << 40; }, "its tactic is"},
        {[](Plugin& p) { p.dtypes = {}; }, "0 types and 1 ranks of results"},
        {[](Plugin& p) { p.dtypes = {"f99"}; }, "'f99' is not an element type"},
        {[](Plugin& p) { p.ranks = {-1}; }, "result 0 has rank -1, 1 sizes are left"},
        {[](Plugin& p) { p.ranks = {INT64_MAX}; }, "sizes are left"},
        {[](Plugin& p) {
             p.sizes = {4, 4};
         },
         "2 sizes of results, expected 1"},
        {[](Plugin& p) { p.symbols = {Dim::symbol("?0")}; }, "1 symbols, 0 results that hold them"},
        {[](Plugin& p) {
             p.symbols = {Dim::symbol("?0")};
             p.size_results = {3};
             p.most = {4};
         },
         "size 0 is in result 3 of 1"},
        {[](Plugin& p) {
             p.symbols = {Dim::symbol("?0")};
             p.size_results = {0};
             p.most = {4};
         },
         "result 0 holds a size and is f32[4], expected an i32 or i64 scalar"},
        {[](Plugin& p) {
             p.aliases = {0, 0};
         },
         "2 aliases for 1 results"},
        {[](Plugin& p) { p.aliases = {1}; }, "result 0 updates input 1 of 1"},
        {[](Plugin& p) {
             p.aliases = {0};
             p.dtypes = {"i32"};
         },
         "result 0 i32[4] updates input 0 f32[4]"},
        {[](Plugin& p) { p.shape_ranks = {2}; }, "a shape input has rank 2, expected 0 or 1"},
        {[](Plugin& p) { p.shape_ranks = {1}; }, "shape inputs have too few elements"},
        {[](Plugin& p) {
             p.shape_ranks = {1};
             p.shape_values = {INT64_MAX, 1};
         },
         "elements"},
        {[](Plugin& p) { p.shape_values = {1}; }, "shape inputs have too many elements"},
        {[](Plugin& p) { p.field_names = {"a"}; }, "1 names of fields, 0 types, 0 lengths"},
        {[](Plugin& p) {
             p.field_names = {"a"};
             p.field_types = {1};
             p.field_lengths = {5};
         },
         "field 'a' has 20 bytes, 0 are left"},
        {[](Plugin& p) {
             p.field_names = {"a"};
             p.field_types = {14};
             p.field_lengths = {5};
         },
         "a field has type 14, expected 0 to 13"},
        {[](Plugin& p) {
             p.field_names = {"a"};
             p.field_types = {1};
             p.field_lengths = {-1};
         },
         "a field has -1 elements"},
        {[](Plugin& p) { p.field_bytes = Tensor::zeros(DType::U8, {16}); },
         "16 bytes belong to no field"},
        {[](Plugin& p) { p.field_bytes = Tensor(); }, "are not a u8 tensor of rank 1"},
    };
    EXPECT_EQ(error_of(one_result()), "");
    for (const Mistake& m : mistakes) {
        Plugin p = one_result();
        m.change(p);
        EXPECT_NE(error_of(p).find(m.message), std::string::npos) << error_of(p) << m.message;
    }
}

TEST(PluginOp, FieldsComeBackAligned) {
    std::vector<std::byte> bytes(100, std::byte{3});
    PluginFieldView fields[] = {{"a", 6, 5, std::span(bytes).first(5)},
                                {"packed", 12, 5, std::span(bytes).first(3)},
                                {"shape", 7, 1, std::span(bytes).first(72)}};
    Plugin p = one_result();
    set_plugin_fields(p, fields);
    std::vector<PluginFieldView> again = plugin_fields(p);
    ASSERT_EQ(again.size(), 3);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(again[i].name, fields[i].name);
        EXPECT_EQ(again[i].bytes.size(), fields[i].bytes.size());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(again[i].bytes.data()) % field_alignment, 0);
    }
}

TEST(SourceOp, SignaturesGiveTypes) {
    SourceKernel k;
    k.kernel = k.source = "k";
    k.signature = "float32[n, m], T[m, ...] -> T[2 * n, max(m, 3) % 4], bool[...]";
    k.grid = "ceil_div(n * ..., 32), (n - 1) / 2";
    k.block = "32";
    k.arguments = "-m + 5, int(n), float(-1.5), double(alpha)";
    k.float_names = {"alpha"};
    k.float_values = {0.25};
    Type in[] = {parse_type("f32[N,4]"), parse_type("i8[M,2,5]")};
    BoundSource b = bind_source(k, in);
    ASSERT_EQ(b.results.size(), 2);
    EXPECT_EQ(to_text(b.results[0]), "i8[2*N,0]");
    EXPECT_EQ(to_text(b.results[1]), "bool[2,5]");
    EXPECT_EQ(to_text(b.grid[0]), to_text(ceil_div(Dim::symbol("N") * Dim(10), 32)));
    EXPECT_TRUE(b.grid[2].is_const(1));
    ASSERT_EQ(b.conditions.size(), 1); // M is 4
    EXPECT_EQ(b.arguments[0].integer, Dim(1));
    EXPECT_EQ(b.arguments[2].real, -1.5);
    EXPECT_EQ(b.arguments[3].real, 0.25);
    ASSERT_EQ(b.types.size(), 1);
    EXPECT_EQ(b.types[0].second, DType::I8);
}

TEST(SourceOp, HasNoReferenceEvaluation) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    g.add_output("y", g.add(plugin_def, one_result(), std::array{x})[0]);
    Tensor t = Tensor::zeros(DType::F32, {4});
    try {
        evaluate(g, std::array{t});
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("'plugin' has no reference evaluation"),
                  std::string::npos);
    }
}

} // namespace
} // namespace ingot::test
