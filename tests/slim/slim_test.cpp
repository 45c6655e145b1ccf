// SPDX-License-Identifier: Apache-2.0
// slim on handcrafted models: each rule does exactly its rewrite, results stay the same, and
// slimming again changes nothing.
#include "base/error.h"
#include "onnx/data_type.h"
#include "onnx/writer.h"
#include "slim_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ingot::slim_test {
namespace {

// For fused arithmetic in f32, relative to the largest element.
constexpr double rounding = 1e-5;

bool is_exact(const SlimReport& report) {
    const std::vector<SlimRuleInfo> rules = slim_rules();
    return std::all_of(rules.begin(), rules.end(), [&](const SlimRuleInfo& r) {
        return r.exact || !report.applied.contains(std::string(r.name));
    });
}

std::vector<std::string> names(const std::vector<onnx::ValueInfo>& list) {
    std::vector<std::string> out;
    for (const onnx::ValueInfo& v : list) {
        out.push_back(v.name);
    }
    return out;
}

// Slims, and checks the properties of every model.
onnx::Model slimmed(const onnx::Model& model, const SlimOptions& options = {},
                    SlimReport* report = nullptr) {
    SlimReport own;
    SlimReport& r = report == nullptr ? own : *report;
    const std::string before = onnx::write_model(model);
    onnx::Model out = slim_model(model, options, &r);
    EXPECT_EQ(onnx::write_model(model), before) << "the model itself has changed";
    EXPECT_EQ(names(out.graph.outputs), names(model.graph.outputs));
    EXPECT_EQ(difference(run(out), run(model), is_exact(r) ? 0 : rounding), "");
    EXPECT_EQ(onnx::write_model(slim_model(model, options)), onnx::write_model(out));
    EXPECT_EQ(onnx::write_model(slim_model(out, options)), onnx::write_model(out))
        << "slimming again changes something";
    return out;
}

onnx::Model built(const SlimCase& c) {
    Builder b(c.opset);
    c.build(b);
    return b.model();
}

class Slim : public ::testing::TestWithParam<SlimCase> {};

TEST_P(Slim, Applies) {
    SlimReport report;
    SlimOptions options;
    options.skip = GetParam().skip;
    const onnx::Model out = slimmed(built(GetParam()), options, &report);
    EXPECT_EQ(count_operators(out), GetParam().expected);
    EXPECT_TRUE(report.applied.contains(GetParam().rule)) << GetParam().rule << " did not apply";
}

TEST_P(Slim, CanBeLeftOut) {
    SlimOptions options;
    options.skip = GetParam().skip;
    options.skip.push_back(GetParam().rule);
    SlimReport report;
    slimmed(built(GetParam()), options, &report);
    EXPECT_FALSE(report.applied.contains(GetParam().rule));
}

class SlimNearMiss : public ::testing::TestWithParam<SlimCase> {};

TEST_P(SlimNearMiss, Stays) {
    SlimReport report;
    SlimOptions options;
    options.skip = GetParam().skip;
    const onnx::Model out = slimmed(built(GetParam()), options, &report);
    EXPECT_EQ(count_operators(out), GetParam().expected);
    EXPECT_FALSE(report.applied.contains(GetParam().rule)) << GetParam().rule << " applied";
}

std::string case_name(const ::testing::TestParamInfo<SlimCase>& info) {
    std::string name = info.param.name;
    std::replace_if(
        name.begin(), name.end(), [](char ch) { return std::isalnum(ch) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Structure, Slim, ::testing::ValuesIn(structural_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Fusion, Slim, ::testing::ValuesIn(fusion_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Rules, SlimNearMiss, ::testing::ValuesIn(near_misses()), case_name);

TEST(SlimRules, EachHasACase) {
    std::set<std::string> with_case;
    for (const std::vector<SlimCase>& list : {structural_cases(), fusion_cases()}) {
        for (const SlimCase& c : list) {
            with_case.insert(c.rule);
        }
    }
    for (const SlimRuleInfo& r : slim_rules()) {
        EXPECT_TRUE(with_case.contains(std::string(r.name))) << r.name << " has no case";
    }
}

TEST(SlimRules, UnknownNamesAreRefused) {
    Builder b;
    b.output(b.node("Relu", {b.input("x", {2})}));
    SlimOptions options;
    options.skip = {"graph_fusio"};
    try {
        slim_model(b.model(), options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        EXPECT_STREQ(e.what(),
                     "there is no optimisation 'graph_fusio'; did you mean graph_fusion?");
    }
}

TEST(SlimOptions, InputShapesReplaceNamedSizesEverywhere) {
    Builder b;
    const std::string x = b.input("x", {"n", 4});
    const std::string mask = b.input("mask", {"n", 4});
    const std::string shape = b.node("Shape", {x});
    b.output(b.node("Reshape", {b.node("Mul", {x, mask}), shape}));
    SlimOptions options;
    options.input_shapes = {{"x", {2, 4}}};
    const onnx::Model out = slim_model(b.model(), options);
    EXPECT_EQ(count_operators(out), (OpCounts{{"Mul", 1}}));
    for (const onnx::ValueInfo& v : out.graph.inputs) {
        EXPECT_EQ(v.dims[0].value, 2) << v.name;
    }
    options.input_shapes = {{"y", {2, 4}}};
    EXPECT_THROW(slim_model(b.model(), options), Error);
    options.input_shapes = {{"x", {2, 4, 1}}};
    EXPECT_THROW(slim_model(b.model(), options), Error);
}

// x * w, where the initializer w is an input too.
onnx::Model with_initializer_input() {
    Builder b;
    const std::string x = b.input("x", {2, 3});
    const std::string w = b.constant(Tensor::scalar(DType::F32, 1));
    b.output(b.node("Mul", {x, w}));
    onnx::Model m = b.model();
    m.graph.inputs.push_back(m.graph.inputs[0]);
    m.graph.inputs.back().name = w;
    m.graph.inputs.back().dims.clear();
    m.ir_version = 3;
    return m;
}

TEST(SlimOptions, InitializersAreFrozenUnlessKept) {
    const onnx::Model m = with_initializer_input();
    const onnx::Model frozen = slim_model(m);
    EXPECT_EQ(names(frozen.graph.inputs), std::vector<std::string>{"x"});
    EXPECT_EQ(frozen.ir_version, 4);
    SlimOptions options;
    options.keep_initializer_inputs = true;
    const onnx::Model kept = slim_model(m, options);
    EXPECT_EQ(kept.graph.inputs.size(), 2U);
    EXPECT_EQ(kept.graph.initializers.size(), 1U);
    EXPECT_EQ(count_operators(kept), (OpCounts{{"Mul", 1}})) << "its value may be another one";
}

TEST(SlimOptions, FoldedConstantsStayBelowTheThreshold) {
    Builder b;
    const std::string w = b.weights({64, 64});
    const std::string x = b.input("x", {64, 64});
    const std::string sum = b.node("Add", {b.node("Transpose", {w}), x});
    b.outputs({sum, b.node("Add", {x, w})});
    SlimOptions options;
    options.size_threshold = 64 * 64 * 4 - 1;
    EXPECT_EQ(count_operators(slim_model(b.model(), options)),
              (OpCounts{{"Add", 2}, {"Transpose", 1}}));
    options.size_threshold = 64 * 64 * 4;
    EXPECT_EQ(count_operators(slim_model(b.model(), options)), (OpCounts{{"Add", 2}}));
}

TEST(SlimFold, ExpandStaysWhereItIsSmall) {
    for (const char* op : {"Expand", "Tile"}) {
        Builder b;
        const std::string x = b.input("x", {64, 64});
        const std::string w = b.weights({1, 64});
        const std::string list = b.ints({64, 1});
        // Gather keeps the broadcast from being left out.
        b.output(b.node("Gather", {b.node(op, {w, list}), b.input("i", {2}, DType::I64)}));
        b.output(b.node("Relu", {x}));
        EXPECT_EQ(count_operators(slim_model(b.model())),
                  (OpCounts{{op, 1}, {"Gather", 1}, {"Relu", 1}}));
    }
}

TEST(SlimFold, RandomNumbersAndQuantisationStay) {
    Builder b;
    const std::string zero = b.constant(Tensor::scalar_i64(DType::I8, 0));
    const std::string q = b.node("QuantizeLinear", {b.weights({4}), b.scalar(0.1), zero});
    const std::string d = b.node("DequantizeLinear", {q, b.scalar(0.1), zero});
    const std::string r =
        b.node("RandomNormal", {}, {{"shape", std::vector<int64_t>{4}}, {"seed", 1.0F}});
    const std::string s =
        b.node("RandomNormal", {}, {{"shape", std::vector<int64_t>{4}}, {"seed", 1.0F}});
    b.outputs({b.node("Add", {d, r}), b.node("Add", {d, s})});
    EXPECT_EQ(
        count_operators(slim_model(b.model())),
        (OpCounts{
            {"Add", 2}, {"DequantizeLinear", 1}, {"QuantizeLinear", 1}, {"RandomNormal", 2}}));
}

TEST(SlimNames, OutputsKeepTheirsAndEachItsOwn) {
    Builder b;
    const std::string x = b.input("x", {2});
    const std::string y = b.node("Relu", {x});
    // Two names for one tensor, and an input given back: each needs a node.
    b.outputs({b.node("Identity", {y}), b.node("Identity", {y}), b.node("Identity", {x})});
    const onnx::Model out = slimmed(b.model());
    EXPECT_EQ(count_operators(out), (OpCounts{{"Identity", 2}, {"Relu", 1}}));
}

TEST(SlimNames, UnknownOperatorsAndTheirNeighboursStay) {
    Builder b;
    const std::string x = b.input("x", {2, 2});
    const std::string custom = b.node("Custom", {b.node("Identity", {x})});
    b.graph.nodes.back().domain = "com.example";
    b.output(b.node("Relu", {b.node("Relu", {b.node("Identity", {custom})})}));
    onnx::Model m = b.model();
    m.opset_imports["com.example"] = 1;
    EXPECT_EQ(count_operators(slim_model(m)), (OpCounts{{"Relu", 1}, {"com.example.Custom", 1}}));
}

TEST(SlimOldOpsets, OnlyWhatNeedsNoMeaningGoes) {
    Builder b(6);
    const std::string x = b.input("x", {2, 2});
    const std::string dead = b.node("Relu", {x});
    b.outputs({b.node("Abs", {x}), b.node("Relu", {b.node("Identity", {x})})});
    b.graph.nodes.push_back(b.graph.nodes[0]);
    b.graph.nodes.back().outputs = {"unused"};
    const onnx::Model out = slim_model(b.model());
    EXPECT_EQ(count_operators(out), (OpCounts{{"Abs", 1}, {"Identity", 1}, {"Relu", 1}}));
}

onnx::Graph branch(const std::string& prefix, const std::function<std::string(Builder&)>& build) {
    Builder b(17, prefix);
    b.output(build(b));
    b.graph.name = prefix;
    return b.graph;
}

TEST(SlimBodies, AreSlimmedToo) {
    Builder b;
    const std::string x = b.input("x", {4});
    const std::string c = b.input("c", {}, DType::Bool);
    const std::string y = b.node("Identity", {x});
    // Both branches use the same names inside, and capture y.
    const onnx::Graph t = branch("u", [&](Builder& i) {
        return i.node("Relu", {i.node("Identity", {i.node("Add", {y, i.scalar(0)})})});
    });
    const onnx::Graph e = branch("u", [&](Builder& i) {
        return i.node("Mul", {i.node("Neg", {i.node("Neg", {y})}), i.scalar(2)});
    });
    b.output(b.node("If", {c}, {{"then_branch", t}, {"else_branch", e}}));
    const onnx::Model out = slimmed(b.model());
    EXPECT_EQ(count_operators(out), (OpCounts{{"If", 1}, {"Mul", 1}, {"Relu", 1}}));
}

TEST(SlimBodies, BranchResultsThatAreCapturedKeepTheirNode) {
    Builder b;
    const std::string x = b.input("x", {4});
    const std::string c = b.input("c", {}, DType::Bool);
    const onnx::Graph t = branch("u", [&](Builder& i) { return i.node("Identity", {x}); });
    const onnx::Graph e = branch("v", [&](Builder& i) { return i.node("Neg", {x}); });
    b.output(b.node("If", {c}, {{"then_branch", t}, {"else_branch", e}}));
    const onnx::Model out = slimmed(b.model());
    EXPECT_EQ(count_operators(out), (OpCounts{{"Identity", 1}, {"If", 1}, {"Neg", 1}}));
}

TEST(SlimBodies, ADecidedIfInsideABranchDissolves) {
    Builder b;
    const std::string x = b.input("x", {4});
    const std::string c = b.input("c", {}, DType::Bool);
    const onnx::Graph inner_then = branch("u", [&](Builder& i) { return i.node("Abs", {x}); });
    const onnx::Graph inner_else = branch("u", [&](Builder& i) { return i.node("Exp", {x}); });
    const onnx::Graph t = branch("u", [&](Builder& i) {
        const std::string yes = i.constant(Tensor::scalar_i64(DType::Bool, 1));
        return i.node("Neg", {i.node("If", {yes},
                                     {{"then_branch", inner_then}, {"else_branch", inner_else}})});
    });
    const onnx::Graph e = branch("u", [&](Builder& i) { return i.node("Neg", {x}); });
    b.output(b.node("If", {c}, {{"then_branch", t}, {"else_branch", e}}));
    const onnx::Model out = slimmed(b.model());
    EXPECT_EQ(count_operators(out), (OpCounts{{"Abs", 1}, {"If", 1}, {"Neg", 2}}));
}

TEST(SlimTypes, AreWrittenDown) {
    Builder b;
    const std::string x = b.input("x", {"n", 4});
    const std::string y = b.node("Transpose", {b.node("Relu", {x})});
    b.output(b.node("Neg", {y}));
    const onnx::Model out = slimmed(b.model());
    ASSERT_EQ(out.graph.value_info.size(), 2U);
    const onnx::ValueInfo& v = out.graph.value_info[1];
    EXPECT_EQ(v.name, y);
    EXPECT_EQ(v.elem_type, onnx::data_type_number(DType::F32));
    EXPECT_EQ(v.dims, (std::vector<onnx::ShapeDim>{{4, ""}, {-1, "n"}}));
}

TEST(SlimErrors, ACycleIsNamed) {
    Builder b;
    const std::string x = b.input("x", {2});
    const std::string a = b.node("Add", {x, "t1"});
    b.output(b.node("Relu", {a}));
    try {
        slim_model(b.model());
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidModel);
        std::string text = e.what();
        EXPECT_NE(text.find("the graph has a cycle: "), std::string::npos) << text;
        EXPECT_NE(text.find("Add '"), std::string::npos) << text;
        EXPECT_NE(text.find("Relu '"), std::string::npos) << text;
    }
}

} // namespace
} // namespace ingot::slim_test
