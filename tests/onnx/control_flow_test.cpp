// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: captures, sizes that change, conditions and directions.
#include "onnx/model_builder.h"

#include <cmath>

namespace ingot::onnx::test {

namespace {

using V = std::vector<double>;

std::vector<ingot::Tensor> run(const Model& m, const std::vector<ingot::Tensor>& in) {
    return evaluate(import_verified(m), in);
}

Graph branch(std::vector<Node> nodes, std::string out) {
    return graph({}, {std::move(out)}, std::move(nodes));
}

Model choice(Node then_node, Node else_node, std::vector<Tensor> initializers = {}) {
    std::vector<std::string> inputs = {"x:f32[N,1]"};
    if (initializers.empty()) {
        inputs.push_back("c:bool[]");
    }
    Node n = node("If", {"c"}, {"y"},
                  {graph_of("then_branch", branch({std::move(then_node)}, "t")),
                   graph_of("else_branch", branch({std::move(else_node)}, "e"))});
    return model(graph(inputs, {"y"}, {n}, std::move(initializers)));
}

TEST(If, RunsTheBranchThatTheConditionChooses) {
    Model m = choice(node("Neg", {"x"}, {"t"}), node("Add", {"x", "x"}, {"e"}));
    EXPECT_EQ(elements(run(m, {floats({2, 1}, {1, 2}), boolean(true)})[0]), (V{-1, -2}));
    EXPECT_EQ(elements(run(m, {floats({2, 1}, {1, 2}), boolean(false)})[0]), (V{2, 4}));
    EXPECT_EQ(type_of(import_verified(m)), "f32[N,1]");
}

TEST(If, SizesMayDependOnTheCondition) {
    Model m = choice(node("Concat", {"x", "x"}, {"t"}, {int_of("axis", 0)}),
                     node("Identity", {"x"}, {"e"}));
    EXPECT_EQ(run(m, {floats({2, 1}, {1, 2}), boolean(true)})[0].shape(), (Shape{4, 1}));
    EXPECT_EQ(run(m, {floats({2, 1}, {1, 2}), boolean(false)})[0].shape(), (Shape{2, 1}));
}

TEST(If, RanksMayNotDependOnTheCondition) {
    Model m = choice(node("Flatten", {"x"}, {"t"}), node("Squeeze", {"x", "one"}, {"e"}));
    m.graph.initializers.push_back(i64_initializer("one", {1}));
    EXPECT_EQ(refusal(m), "result 0 is f32[N,1] in one branch and f32[N] in the other: a rank that "
                          "depends on data is not supported");
}

/// If(c, Squeeze(x, -1), x), or the branches the other way round, with the axes in a Constant.
Node squeeze_or_same(bool squeeze_first) {
    Node axes = node("Constant", {}, {"a"}, {ints_of("value_ints", {-1})});
    Graph squeeze = branch({axes, node("Squeeze", {"x", "a"}, {"t"})}, "t");
    Graph same = branch({node("Identity", {"x"}, {"e"})}, "e");
    return node("If", {"c"}, {"y"},
                {graph_of("then_branch", squeeze_first ? squeeze : same),
                 graph_of("else_branch", squeeze_first ? same : squeeze)});
}

TEST(If, ASqueezeOfAnOpenSizeIsCheckedWhenItRuns) {
    // TorchScript's x.squeeze(-1): either branch may be the Squeeze.
    for (bool first : {true, false}) {
        Graph g =
            graph({"x:f32[2,N]"}, {"y"},
                  {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"d"}),
                   node("Equal", {"d", "one"}, {"equal"}),
                   node(first ? "Identity" : "Not", {"equal"}, {"c"}), squeeze_or_same(first)},
                  {i64_initializer("one", {1})});
        ingot::Graph made = import_verified(model(g));
        EXPECT_EQ(type_of(made), "f32[2]");
        EXPECT_EQ(elements(evaluate(made, std::array{floats({2, 1}, {1, 2})})[0]), (V{1, 2}));
        EXPECT_THROW(evaluate(made, std::array{floats({2, 3}, V(6))}), Error);
    }
}

TEST(If, AConditionThatIsNotAboutSizesMakesNoSqueeze) {
    Graph g = graph({"x:f32[2,N]", "c:bool[]"}, {"y"}, {squeeze_or_same(true)});
    EXPECT_EQ(refusal(model(g)),
              "result 0 is f32[2] in one branch and f32[2,N] in the other: a rank that depends on "
              "data is not supported");
}

TEST(If, OnlyASqueezeOfTheSameValueIsTakenForOne) {
    Model m = choice(node("Squeeze", {"x", "one"}, {"t"}), node("Identity", {"z"}, {"e"}));
    m.graph.inputs.push_back(value("z:f32[N,1]"));
    m.graph.initializers.push_back(i64_initializer("one", {1}));
    EXPECT_EQ(refusal(m), "result 0 is f32[N] in one branch and f32[N,1] in the other: a rank that "
                          "depends on data is not supported");
}

/// The text of the error of a run; "" when it runs.
std::string error_of_run(const Model& m, const std::vector<ingot::Tensor>& in) {
    try {
        run(m, in);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(If, ReadersMoveIntoBranchesOfDifferentRank) {
    // [N,1] or [N]: their sums agree, however many nodes come between.
    for (bool through : {false, true}) {
        Model m = choice(node("Flatten", {"x"}, {"t"}), node("Squeeze", {"x", "one"}, {"e"}));
        m.graph.initializers.push_back(i64_initializer("one", {1}));
        std::string last = through ? "exp" : "y";
        m.graph.nodes.push_back(node("Abs", {"x"}, {"apart"})); // reads neither
        if (through) {
            m.graph.nodes.push_back(node("Exp", {"y"}, {"exp"}));
        }
        m.graph.nodes.push_back(node("ReduceSum", {last}, {"sum"}, {int_of("keepdims", 0)}));
        m.graph.nodes.push_back(node("Mul", {"sum", "apart"}, {"z"}));
        m.graph.outputs = {value("z:f32[N,1]")};
        EXPECT_EQ(type_of(import_verified(m)), "f32[N,1]");
        double sum = through ? std::exp(1.0) + std::exp(-2.0) : -1;
        for (bool condition : {true, false}) {
            auto z = run(m, {floats({2, 1}, {1, -2}), boolean(condition)})[0];
            EXPECT_NEAR(z.get_f64(0), sum, 1e-5);
            EXPECT_NEAR(z.get_f64(1), 2 * sum, 1e-5);
        }
    }
}

TEST(If, ABranchWhoseRankNoReaderTakesFailsWhenItRuns) {
    Model m = choice(node("Flatten", {"x"}, {"t"}), node("Squeeze", {"x", "one"}, {"e"}));
    m.graph.initializers.push_back(i64_initializer("one", {1}));
    m.graph.nodes.push_back(node("Transpose", {"y"}, {"z"}, {ints_of("perm", {1, 0})}));
    m.graph.nodes.back().name = "turn";
    m.graph.outputs = {value("z:f32[1,N]")};
    EXPECT_EQ(elements(run(m, {floats({2, 1}, {1, 2}), boolean(true)})[0]), (V{1, 2}));
    EXPECT_EQ(type_of(import_verified(m)), "f32[1,N]");
    std::string error = error_of_run(m, {floats({2, 1}, {1, 2}), boolean(false)});
    EXPECT_NE(error.find("the else_branch of node 'If_0' (If) was to run, but node 'turn' "
                         "(Transpose, opset"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("attribute 'perm' is [1,0], expected a permutation of 1 axes"),
              std::string::npos)
        << error;
}

TEST(If, ABranchThatCannotBeImportedFailsWhenItRuns) {
    for (bool first : {true, false}) {
        Node bad = node("NoSuchOperator", {"x"}, {first ? "t" : "e"});
        Node good = node("Neg", {"x"}, {first ? "e" : "t"});
        Model m = choice(first ? bad : good, first ? good : bad);
        EXPECT_EQ(elements(run(m, {floats({2, 1}, {1, 2}), boolean(!first)})[0]), (V{-1, -2}));
        EXPECT_EQ(type_of(import_verified(m)), "f32[N,1]");
        std::string error = error_of_run(m, {floats({2, 1}, {1, 2}), boolean(first)});
        EXPECT_NE(error.find(str("the ", first ? "then" : "else",
                                 "_branch of node 'If_0' (If) was to run, but node '#0' "
                                 "(NoSuchOperator, opset")),
                  std::string::npos)
            << error;
    }
    // Sizes that only the good branch knows are open outside.
    Model m = choice(node("NonZero", {"x"}, {"t"}), node("NoSuchOperator", {"x"}, {"e"}));
    auto out = run(m, {floats({3, 1}, {1, 0, 2}), boolean(true)});
    EXPECT_EQ(out[0].shape(), (Shape{2, 2}));
}

TEST(If, WhereNoBranchCanBeImportedTheModelIsRefused) {
    Model m = choice(node("NoSuchOperator", {"x"}, {"t"}), node("NorThis", {"x"}, {"e"}));
    std::vector<Refusal> all = import_model(m).refusals;
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].type, "NoSuchOperator");
    EXPECT_EQ(all[1].type, "If");
    EXPECT_NE(all[1].reason.find("has nodes that cannot be imported"), std::string::npos);
}

TEST(If, NamesThatABranchUsesToo) {
    // "inner" means one value in the then branch and another one outside: nothing moves.
    Model m = choice(node("Flatten", {"x"}, {"t"}), node("Squeeze", {"x", "one"}, {"e"}));
    m.graph.initializers.push_back(i64_initializer("one", {1}));
    m.graph.nodes.insert(m.graph.nodes.begin(), node("Neg", {"x"}, {"t"}));
    m.graph.nodes.push_back(node("Mul", {"y", "t"}, {"z"}));
    m.graph.outputs = {value("z:f32[N,N]")};
    EXPECT_NE(refusal(m), "");
}

TEST(If, AKnownConditionImportsOnlyItsBranch) {
    Model m = choice(node("Squeeze", {"x", "one"}, {"t"}), node("NoSuchOperator", {"x"}, {"e"}),
                     {initializer("c", boolean(true)), i64_initializer("one", {1})});
    ingot::Graph g = import_verified(m);
    EXPECT_EQ(type_of(g), "f32[N]");
    EXPECT_EQ(elements(evaluate(g, std::array{floats({3, 1}, {1, 2, 3})})[0]), (V{1, 2, 3}));
}

TEST(If, AConditionOnAKnownSizeIsKnown) {
    // torch.squeeze as exporters write it: if shape[1] == 1 then squeeze else identity
    Graph g =
        graph({"x:f32[N,1]"}, {"y"},
              {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"d"}),
               node("Equal", {"d", "one"}, {"c"}),
               node("If", {"c"}, {"y"},
                    {graph_of("then_branch", branch({node("Squeeze", {"x", "axes"}, {"t"})}, "t")),
                     graph_of("else_branch", branch({node("Identity", {"x"}, {"e"})}, "e"))})},
              {initializer("one", ingot::Tensor::scalar_i64(DType::I64, 1)),
               i64_initializer("axes", {1})});
    EXPECT_EQ(type_of(import_verified(model(g))), "f32[N]");
}

// --- Loop --------------------------------------------------------------------------------------

// (trips, condition, a) -> (a + x each time, all values of a before)
Model adding_loop(std::string trips, std::string condition) {
    Graph body = graph({"i:i64[]", "go:bool[]", "a:f32[2]"}, {"go_out", "sum", "before"},
                       {node("Identity", {"go"}, {"go_out"}), node("Add", {"a", "x"}, {"sum"}),
                        node("Identity", {"a"}, {"before"})});
    return model(graph({"x:f32[2]", "n:i64[]", "c:bool[]"}, {"last", "all"},
                       {node("Loop", {std::move(trips), std::move(condition), "x"}, {"last", "all"},
                             {graph_of("body", std::move(body))})}));
}

TEST(Loop, RunsTripCountTimes) {
    Model m = adding_loop("n", "");
    auto out = run(m, {floats({2}, {1, 2}), integers({}, {3}), boolean(false)});
    EXPECT_EQ(elements(out[0]), (V{4, 8}));
    EXPECT_EQ(elements(out[1]), (V{1, 2, 2, 4, 3, 6}));
    EXPECT_EQ(out[1].shape(), (Shape{3, 2}));
}

TEST(Loop, RunsNotAtAll) {
    auto out = run(adding_loop("n", ""), {floats({2}, {1, 2}), integers({}, {0}), boolean(true)});
    EXPECT_EQ(elements(out[0]), (V{1, 2}));
    EXPECT_EQ(out[1].shape(), (Shape{0, 2}));
    out = run(adding_loop("n", "c"), {floats({2}, {1, 2}), integers({}, {5}), boolean(false)});
    EXPECT_EQ(elements(out[0]), (V{1, 2}));
}

TEST(Loop, AKnownTripCountIsTheSizeOfStackedResults) {
    Model m = adding_loop("n", "");
    m.graph.inputs.erase(m.graph.inputs.begin() + 1, m.graph.inputs.end());
    m.graph.initializers.push_back(initializer("n", integers({}, {4})));
    EXPECT_EQ(type_of(import_verified(m), 1), "f32[4,2]");
}

TEST(Loop, WithoutAConditionTheBodysConditionIsIgnored) {
    Model m = adding_loop("n", "");
    m.graph.nodes[0].attributes[0].g->nodes[0] = node("Not", {"go"}, {"go_out"});
    auto out = run(m, {floats({2}, {1, 2}), integers({}, {3}), boolean(false)});
    EXPECT_EQ(elements(out[0]), (V{4, 8}));
}

// while (sum of list < limit) list = [list, last + 1]
Model growing_loop() {
    Graph body =
        graph({"i:i64[]", "go:bool[]", "list:i64[1]"}, {"more", "longer", "length"},
              {node("Unsqueeze", {"i", "zero"}, {"item"}),
               node("Concat", {"list", "item"}, {"longer"}, {int_of("axis", 0)}),
               node("ReduceSum", {"longer"}, {"sum"}, {int_of("keepdims", 0)}),
               node("Less", {"sum", "limit"}, {"more"}), node("Shape", {"longer"}, {"length"})});
    return model(graph({"limit:i64[]", "start:i64[1]"}, {"list", "lengths"},
                       {node("Loop", {"", "yes", "start"}, {"list", "lengths"},
                             {graph_of("body", std::move(body))})},
                       {initializer("yes", boolean(true)), i64_initializer("zero", {0})}));
}

TEST(Loop, CarriedValuesMayGrow) {
    ingot::Graph g = import_verified(growing_loop());
    auto out = evaluate(g, std::array{integers({}, {6}), integers({1}, {0})});
    EXPECT_EQ(elements(out[0]), (V{0, 0, 1, 2, 3}));
    EXPECT_EQ(elements(out[1]), (V{2, 3, 4, 5}));
    EXPECT_EQ(out[1].shape(), (Shape{4, 1}));
}

TEST(Loop, ARankMayNotChange) {
    Graph body = graph({"i:i64[]", "go:bool[]", "a:f32[2]"}, {"go", "b"},
                       {node("Unsqueeze", {"a", "zero"}, {"b"})});
    Model m =
        model(graph({"x:f32[2]", "n:i64[]"}, {"y"},
                    {node("Loop", {"n", "", "x"}, {"y"}, {graph_of("body", std::move(body))})},
                    {i64_initializer("zero", {0})}));
    EXPECT_EQ(refusal(m),
              "carried value 0 goes in as f32[2] and comes out as f32[1,2]: a rank that "
              "changes between iterations is not supported");
}

TEST(Loop, StackedSizesMayDependOnData) {
    // nonzero(x) in each iteration: a size that only the body knows
    Graph body =
        graph({"i:i64[]", "go:bool[]"}, {"go", "found"}, {node("NonZero", {"x"}, {"found"})});
    Model m = model(graph({"x:f32[M]", "n:i64[]"}, {"y"},
                          {node("Loop", {"n", ""}, {"y"}, {graph_of("body", std::move(body))})}));
    auto out = run(m, {floats({4}, {0, 5, 0, 7}), integers({}, {2})});
    EXPECT_EQ(out[0].shape(), (Shape{2, 1, 2}));
    EXPECT_EQ(elements(out[0]), (V{1, 3, 1, 3}));
}

TEST(Loop, NestedBodiesSeeAllOuterValues) {
    // y = sum over i < 3, j < 2 of (x + i)
    Graph inner = graph({"j:i64[]", "go2:bool[]", "b:i64[]"}, {"go2", "b2"},
                        {node("Add", {"x", "i"}, {"t"}), node("Add", {"b", "t"}, {"b2"})});
    Graph outer =
        graph({"i:i64[]", "go:bool[]", "a:i64[]"}, {"go", "a2"},
              {node("Loop", {"two", "", "a"}, {"a2"}, {graph_of("body", std::move(inner))})});
    Model m = model(
        graph({"x:i64[]"}, {"y"},
              {node("Loop", {"three", "", "zero"}, {"y"}, {graph_of("body", std::move(outer))})},
              {initializer("two", integers({}, {2})), initializer("three", integers({}, {3})),
               initializer("zero", integers({}, {0}))}));
    EXPECT_EQ(elements(run(m, {integers({}, {10})})[0]), (V{66}));
}

// --- Scan --------------------------------------------------------------------------------------

Graph running_sum() {
    return graph({"s:f32[2]", "e:f32[2]"}, {"s2", "out"},
                 {node("Add", {"s", "e"}, {"s2"}), node("Identity", {"s2"}, {"out"})});
}

Model scan_model(std::vector<Attribute> attributes, const std::string& x) {
    attributes.push_back(int_of("num_scan_inputs", 1));
    attributes.push_back(graph_of("body", running_sum()));
    return model(graph({"s0:f32[2]", x}, {"s", "y"},
                       {node("Scan", {"s0", "x"}, {"s", "y"}, std::move(attributes))}));
}

TEST(Scan, StepsAlongTheFirstAxis) {
    Model m = scan_model({}, "x:f32[T,2]");
    EXPECT_EQ(type_of(import_verified(m), 1), "f32[T,2]");
    auto out = run(m, {floats({2}, {0, 0}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(elements(out[0]), (V{9, 12}));
    EXPECT_EQ(elements(out[1]), (V{1, 2, 4, 6, 9, 12}));
}

TEST(Scan, AxesAndDirections) {
    Model m = scan_model({ints_of("scan_input_axes", {-1}), ints_of("scan_input_directions", {1}),
                          ints_of("scan_output_axes", {1}), ints_of("scan_output_directions", {1})},
                         "x:f32[2,T]");
    EXPECT_EQ(type_of(import_verified(m), 1), "f32[2,T]");
    auto out = run(m, {floats({2}, {0, 0}), floats({2, 3}, {1, 3, 5, 2, 4, 6})});
    EXPECT_EQ(elements(out[0]), (V{9, 12}));
    // from the back: 5, 5+3, 5+3+1, prepended
    EXPECT_EQ(elements(out[1]), (V{9, 8, 5, 12, 10, 6}));
}

TEST(Scan, OldFormHasBatchesAndLengths) {
    Model m = model(graph({"len:i64[B]", "s0:f32[B,2]", "x:f32[B,T,2]"}, {"s", "y"},
                          {node("Scan", {"len", "s0", "x"}, {"s", "y"},
                                {int_of("num_scan_inputs", 1), graph_of("body", running_sum())})}),
                    8);
    EXPECT_EQ(type_of(import_verified(m), 1), "f32[B,T,2]");
    auto out = run(m, {integers({2}, {1, 2}), floats({2, 2}, {0, 0, 10, 10}),
                       floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
    EXPECT_EQ(elements(out[0]), (V{1, 2, 22, 24}));
    EXPECT_EQ(elements(out[1]), (V{1, 2, 0, 0, 15, 16, 22, 24}));
}

} // namespace

} // namespace ingot::onnx::test
