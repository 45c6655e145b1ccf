// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "op_test.h"

namespace ingot::test {
namespace {

GraphRef body(Graph g) {
    return std::make_shared<const Graph>(std::move(g));
}

// f(graph, inputs) adds nodes and returns the outputs.
template <class F>
GraphRef body(const Graph& outer, const std::vector<std::string>& types, F&& f) {
    Graph g = outer.sibling("body");
    Values in;
    for (const std::string& t : types) {
        in.push_back(g.add_input(str("b", in.size()), parse_type(t)));
    }
    int i = 0;
    for (Value v : f(g, in)) {
        g.add_output(str("r", i++), v);
    }
    return body(std::move(g));
}

Tensor flag(bool v) {
    return Tensor::scalar_i64(DType::Bool, v ? 1 : 0);
}
Tensor number(int64_t v) {
    return Tensor::scalar_i64(DType::I64, v);
}

template <class A>
std::string types_of(const OpDef& def, const A& a, const std::vector<std::string>& in) {
    return infer(def, a, in);
}

// --- if ----------------------------------------------------------------------------------------

TEST(If, RunsOneBranch) {
    Graph g;
    Value c = g.add_input("c", parse_type("bool[]"));
    Value x = g.add_input("x", parse_type("f32[N]"));
    GraphRef twice = body(
        g, {"f32[N]"}, [](Graph& b, const Values& in) { return Values{ops::mul(b, in[0], 2.0)}; });
    GraphRef gather_nowhere = body(g, {"f32[N]"}, [](Graph& b, const Values& in) {
        Value v = ops::gather(b, in[0], ops::i64_list(b, {5}), 0);
        return Values{ops::add(b, in[0], v)};
    });
    g.add_output("y", g.add1(if_def, If{twice, gather_nowhere, {}}, {c, x}));
    EXPECT_EQ(to_text(g.type(g.outputs()[0])), "f32[N]");
    std::vector<Tensor> yes = {flag(true), f32({2}, {1, 2})};
    EXPECT_EQ(values(evaluate(g, yes)[0]), (std::vector<double>{2, 4}));
    std::vector<Tensor> no = {flag(false), f32({2}, {1, 2})};
    EXPECT_EQ(error_of([&] { evaluate(g, no); }),
              "invalid argument: gather: index 5 at position [0] is outside axis 0 of size 2");
}

TEST(If, SizesThatDifferBecomeSymbols) {
    Graph g;
    Value c = g.add_input("c", parse_type("bool[]"));
    Value x = g.add_input("x", parse_type("f32[N,2]"));
    Dim k = g.fresh_symbol();
    GraphRef whole = body(g, {"f32[N,2]"}, [](Graph&, const Values& in) { return Values{in[0]}; });
    GraphRef row = body(g, {"f32[N,2]"}, [](Graph& b, const Values& in) {
        return Values{ops::slice(b, in[0], 0, 0, 1)};
    });
    Value y = g.add1(if_def, If{whole, row, {k}}, {c, x});
    EXPECT_EQ(to_text(g.type(y)), "f32[?0,2]");
    g.add_output("rows", ops::dim_scalar(g, k));
    g.add_output("sum", ops::reduce_sum(g, y, {0}));
    Tensor in = f32({3, 2}, {1, 2, 3, 4, 5, 6});
    std::vector<Tensor> yes = evaluate(g, std::vector<Tensor>{flag(true), in});
    EXPECT_EQ(yes[0].get_i64(0), 3);
    EXPECT_EQ(values(yes[1]), (std::vector<double>{9, 12}));
    std::vector<Tensor> no = evaluate(g, std::vector<Tensor>{flag(false), in});
    EXPECT_EQ(no[0].get_i64(0), 1);
    EXPECT_EQ(values(no[1]), (std::vector<double>{1, 2}));
}

TEST(If, SymbolsForEverySize) {
    Graph g;
    GraphRef a = body(g, {"f32[N,2]"}, [](Graph&, const Values& in) { return Values{in[0]}; });
    Dim n = Dim::symbol("N");
    Dim k = Dim::symbol("?5");
    EXPECT_EQ(types_of(if_def, If{a, a, {k, 2}}, {"bool[]", "f32[N,2]"}), "f32[?5,2]");
    EXPECT_EQ(types_of(if_def, If{a, a, {n, 2}}, {"bool[]", "f32[N,2]"}), "f32[N,2]");
    EXPECT_EQ(infer_error(if_def, If{a, a, {n, 3}}, {"bool[]", "f32[N,2]"}),
              "invalid model: if: axis 1 of result 0 is 2 or 2, expected 3");
}

TEST(If, Errors) {
    Graph g;
    GraphRef f = body(g, {"f32[N]"}, [](Graph&, const Values& in) { return Values{in[0]}; });
    GraphRef i = body(g, {"f32[N]"}, [](Graph& b, const Values& in) {
        return Values{ops::cast(b, in[0], DType::I64)};
    });
    GraphRef two = body(g, {"f32[N]"}, [](Graph&, const Values& in) {
        return Values{in[0], in[0]};
    });
    GraphRef first = body(g, {"f32[N]"}, [](Graph& b, const Values& in) {
        return Values{ops::slice(b, in[0], 0, 0, 1)};
    });
    std::vector<std::string> good = {"bool[]", "f32[N]"};
    EXPECT_EQ(infer_error(if_def, If{f, f, {}}, {}),
              "invalid model: if: got no inputs, expected a condition");
    EXPECT_EQ(infer_error(if_def, If{f, f, {}}, {"bool[1]", "f32[N]"}),
              "invalid model: if: the condition is bool[1], expected bool[]");
    EXPECT_EQ(infer_error(if_def, If{f, nullptr, {}}, good),
              "invalid model: if: the else branch is missing");
    EXPECT_EQ(infer_error(if_def, If{f, f, {}}, {"bool[]"}),
              "invalid model: if: the then branch takes 1 inputs, got 0");
    EXPECT_EQ(infer_error(if_def, If{f, f, {}}, {"bool[]", "f32[N,1]"}),
              "invalid model: if: the then branch: input 0 is f32[N,1], expected f32[N]");
    EXPECT_EQ(infer_error(if_def, If{f, i, {}}, good),
              "invalid model: if: result 0 is f32[N] in the then branch and i64[N] in the else "
              "branch, expected one dtype and rank");
    EXPECT_EQ(infer_error(if_def, If{f, two, {}}, good),
              "invalid model: if: the then branch has 1 results, the else branch 2");
    EXPECT_EQ(
        infer_error(if_def, If{f, first, {}}, good),
        "invalid model: if: axis 0 of result 0 is N or 1, which needs symbol 0, got 0 symbols");
    Dims extra = {Dim::symbol("?1"), Dim::symbol("?2")};
    EXPECT_EQ(infer_error(if_def, If{f, first, extra}, good),
              "invalid model: if: got 2 symbols, but the branches differ in 1 sizes");
    EXPECT_EQ(infer_error(if_def, If{f, first, {7, 8}}, good),
              "invalid model: if: symbol 7 is not the name of a size");
}

// --- loop --------------------------------------------------------------------------------------

// condition, sum + iteration, scanned: sum before.
GraphRef summing(const Graph& g) {
    return body(g, {"i64[]", "bool[]", "i64[]"}, [](Graph& b, const Values& in) {
        return Values{in[1], ops::add(b, in[2], in[0]), in[2]};
    });
}

TEST(Loop, CarriesAndScans) {
    Graph g;
    Loop a{summing(g), 1, Dim::symbol("?9"), {}};
    auto y = run_op(loop_def, a, {number(5), flag(true), number(100)});
    EXPECT_EQ(y[0].get_i64(0), 110);
    EXPECT_EQ(values(y[1]), (std::vector<double>{100, 100, 101, 103, 106}));
    EXPECT_EQ(y[1].shape(), Shape{5});
    EXPECT_EQ(types_of(loop_def, a, {"i64[]", "bool[]", "i64[]"}), "i64[], i64[?9]");
}

TEST(Loop, NoIterations) {
    Graph g;
    Loop a{summing(g), 1, Dim::symbol("?9"), {}};
    for (auto& y : {run_op(loop_def, a, {number(0), flag(true), number(7)}),
                    run_op(loop_def, a, {number(-3), flag(true), number(7)}),
                    run_op(loop_def, a, {number(4), flag(false), number(7)})}) {
        EXPECT_EQ(y[0].get_i64(0), 7);
        EXPECT_EQ(y[1].shape(), Shape{0});
        EXPECT_EQ(y[1].dtype(), DType::I64);
    }
}

TEST(Loop, ShapesOfScannedResultsWithoutIterations) {
    Graph g;
    GraphRef b = body(g, {"i64[]", "bool[]", "f32[K,3]", "f32[N]"}, [](Graph& s, const Values& in) {
        Dim count = s.fresh_symbol();
        Value at = s.add1(nonzero_def, NonZero{count}, {in[3]});
        Value more = ops::slice(s, in[3], 0, 0, count + 1);
        return Values{in[1], in[2], in[2], in[3], at, more};
    });
    Loop a{b, 1, Dim::symbol("?90"), {Dim::symbol("K")}};
    auto y =
        run_op(loop_def, a,
               {number(0), flag(true), f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({4}, {1, 2, 3, 4})},
               {{"N", 4}});
    EXPECT_EQ(y[0].shape(), (Shape{2, 3}));
    EXPECT_EQ(y[1].shape(), (Shape{0, 2, 3}));
    EXPECT_EQ(y[2].shape(), (Shape{0, 4}));
    EXPECT_EQ(y[3].shape(), (Shape{0, 1, 0}));
    EXPECT_EQ(y[4].shape(), (Shape{0, 1}));
}

TEST(Loop, StopsByItsCondition) {
    Graph g;
    GraphRef b = body(g, {"i64[]", "bool[]", "i64[]"}, [](Graph& s, const Values& in) {
        Value next = ops::mul(s, in[2], 2.0);
        return Values{ops::less(s, next, ops::scalar_i64(s, DType::I64, 100)), next, in[0]};
    });
    Loop a{b, 1, Dim::symbol("?1"), {}};
    auto y = run_op(loop_def, a, {number(INT64_MAX), flag(true), number(3)});
    EXPECT_EQ(y[0].get_i64(0), 192);
    EXPECT_EQ(values(y[1]), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(Loop, SizesThatGrow) {
    Graph g;
    Value n = g.add_input("n", parse_type("i64[]"));
    Value x = g.add_input("x", parse_type("f32[M]"));
    Dim k = g.fresh_symbol();
    Dim count = g.fresh_symbol();
    GraphRef b =
        body(g, {"i64[]", "bool[]", str("f32[", k, "]"), "f32[M]"}, [](Graph& s, const Values& in) {
            Value both = ops::concat(s, std::vector<Value>{in[2], in[3]}, 0);
            return Values{in[1], both, ops::reduce_sum(s, in[2], {0})};
        });
    Value yes = ops::scalar_i64(g, DType::Bool, 1);
    Values y = g.add(loop_def, Loop{b, 1, count, {k}}, std::vector<Value>{n, yes, x, x});
    EXPECT_EQ(to_text(g.type(y[0])), "f32[?0]");
    EXPECT_EQ(to_text(g.type(y[1])), "f32[?1]");
    g.add_output("y", y[0]);
    g.add_output("s", y[1]);
    g.add_output("sizes", ops::dims_tensor(g, {k, count, Dim::symbol("M")}));
    auto out = evaluate(g, std::vector<Tensor>{number(3), f32({2}, {1, 2})});
    EXPECT_EQ(values(out[0]), (std::vector<double>{1, 2, 1, 2, 1, 2, 1, 2}));
    EXPECT_EQ(values(out[1]), (std::vector<double>{3, 6, 9}));
    EXPECT_EQ(values(out[2]), (std::vector<double>{8, 3, 2}));
    auto none = evaluate(g, std::vector<Tensor>{number(0), f32({2}, {1, 2})});
    EXPECT_EQ(values(none[2]), (std::vector<double>{2, 0, 2}));
}

TEST(Loop, StacksEveryDtype) {
    for (DType t : all_dtypes) {
        Graph g;
        Tensor x = random_tensor(t, {4, 3}, 77);
        GraphRef b =
            body(g, {"i64[]", "bool[]", str(name(t), "[4,3]")}, [](Graph& s, const Values& in) {
                return Values{in[1], ops::gather(s, in[2], in[0], 0)};
            });
        auto y = run_op(loop_def, Loop{b, 0, 4, {}}, {number(4), flag(true), x});
        ASSERT_EQ(y[0], x) << name(t);
    }
}

TEST(Loop, Nested) {
    Graph g;
    GraphRef inner = summing(g);
    GraphRef outer = body(g, {"i64[]", "bool[]", "i64[]"}, [&](Graph& s, const Values& in) {
        Loop a{inner, 1, s.fresh_symbol(), {}};
        Values y = s.add(loop_def, a, std::vector<Value>{in[0], in[1], in[2]});
        return Values{in[1], y[0]};
    });
    auto y = run_op(loop_def, Loop{outer, 1, 4, {}}, {number(5), flag(true), number(0)});
    EXPECT_EQ(y[0].get_i64(0), 0 + 0 + 1 + 3 + 6);
}

TEST(Loop, RunTimeErrors) {
    Graph g;
    GraphRef ragged = body(g, {"i64[]", "bool[]"}, [](Graph& s, const Values& in) {
        Value n = ops::reshape(s, in[0], {1});
        return Values{in[1], ops::full(s, DType::F32, ops::dims_from(s, n), 1)};
    });
    Loop a{ragged, 0, Dim::symbol("?8"), {}};
    EXPECT_EQ(error_of([&] {
                  run_op(loop_def, a, {number(3), flag(true)});
              }),
              "invalid argument: loop: scanned result 0 has shape [1] in iteration 1, expected [0] "
              "as in iteration 0");
    Loop three{summing(g), 1, 3, {}};
    EXPECT_EQ(error_of([&] {
                  run_op(loop_def, three, {number(2), flag(true), number(0)});
              }),
              "invalid argument: result 1 of loop dimension 0 is 2, expected 3");
}

TEST(Loop, CanBeInterrupted) {
    Graph g;
    GraphRef forever =
        body(g, {"i64[]", "bool[]"}, [](Graph&, const Values& in) { return Values{in[1]}; });
    set_time_limit(std::chrono::milliseconds(30));
    std::string error = error_of([&] {
        run_op(loop_def, Loop{forever, 0, {}, {}}, {number(INT64_MAX), flag(true)});
    });
    set_time_limit(std::chrono::milliseconds(0));
    clear_interrupt();
    EXPECT_EQ(error.substr(0, 11), "interrupted") << error;
}

TEST(Loop, Errors) {
    Graph g;
    GraphRef good = summing(g);
    Loop a{good, 1, Dim::symbol("?9"), {}};
    std::vector<std::string> in = {"i64[]", "bool[]", "i64[]"};
    EXPECT_EQ(infer_error(loop_def, a, {"i64[]"}),
              "invalid model: loop: got 1 inputs, expected trip count and condition first");
    EXPECT_EQ(infer_error(loop_def, a, {"i32[]", "bool[]", "i64[]"}),
              "invalid model: loop: the trip count is i32[], expected i64[]");
    EXPECT_EQ(infer_error(loop_def, a, {"i64[]", "bool[2]", "i64[]"}),
              "invalid model: loop: the condition is bool[2], expected bool[]");
    EXPECT_EQ(infer_error(loop_def, a, {"i64[]", "bool[]", "f32[]"}),
              "invalid model: loop: the body: input 2 is f32[], expected i64[]");
    EXPECT_EQ(infer_error(loop_def, Loop{good, 2, 1, {}}, in),
              "invalid model: loop: 2 carried values do not fit 3 inputs");
    EXPECT_EQ(infer_error(loop_def, Loop{nullptr, 1, 1, {}}, in),
              "invalid model: loop: the body is missing");
    GraphRef grows = body(g, {"i64[]", "bool[]", "f32[K]"}, [](Graph& s, const Values& v) {
        return Values{v[1], ops::concat(s, std::vector<Value>{v[2], v[2]}, 0)};
    });
    EXPECT_EQ(
        infer_error(loop_def, Loop{grows, 1, 1, {}}, {"i64[]", "bool[]", "f32[K]"}),
        "invalid model: loop: axis 0 of carried value 0 goes into the body as K and comes out "
        "as 2*K, expected a fresh symbol in the body's input type");
    GraphRef changes = body(g, {"i64[]", "bool[]", "f32[K]"}, [](Graph& s, const Values& v) {
        return Values{v[1], ops::cast(s, v[2], DType::F16)};
    });
    EXPECT_EQ(infer_error(loop_def, Loop{changes, 1, 1, {}}, {"i64[]", "bool[]", "f32[K]"}),
              "invalid model: loop: carried value 0 goes into the body as f32[K] and comes out as "
              "f16[K], expected one dtype and rank");
    GraphRef nothing =
        body(g, {"i64[]", "bool[]", "i64[]"}, [](Graph&, const Values& v) { return Values{v[1]}; });
    EXPECT_EQ(infer_error(loop_def, Loop{nothing, 1, 1, {}}, in),
              "invalid model: loop: the body has 1 results, expected at least 2 (the condition and "
              "the carried values)");
}

// --- fused -------------------------------------------------------------------------------------

TEST(Fused, RunsItsBody) {
    Graph g;
    GraphRef b = body(g, {"f32[N]", "f32[N]"}, [](Graph& s, const Values& in) {
        Value sum = ops::add(s, in[0], in[1]);
        return Values{sum, ops::reduce_sum(s, sum, {0})};
    });
    auto y = run_op(fused_def, Fused{"pointwise", b}, {f32({2}, {1, 2}), f32({2}, {3, 4})});
    EXPECT_EQ(values(y[0]), (std::vector<double>{4, 6}));
    EXPECT_EQ(values(y[1]), (std::vector<double>{10}));
    EXPECT_EQ(types_of(fused_def, Fused{"pointwise", b}, {"f32[N]", "f32[N]"}), "f32[N], f32[]");
    EXPECT_EQ(infer_error(fused_def, Fused{"pointwise", nullptr}, {}),
              "invalid model: fused: the body is missing");
    EXPECT_EQ(infer_error(fused_def, Fused{"pointwise", b}, {"f32[N]"}),
              "invalid model: fused: the body takes 2 inputs, got 1");
}

} // namespace
} // namespace ingot::test
