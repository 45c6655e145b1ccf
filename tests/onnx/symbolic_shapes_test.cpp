// SPDX-License-Identifier: Apache-2.0
// Importer functions on symbolic sizes, and on axes and sizes known only at run time.
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

using V = std::vector<double>;
using Nodes = std::vector<Node>;
using Inputs = std::vector<std::string>;

std::vector<ingot::Tensor> run(const Model& m, const std::vector<ingot::Tensor>& in) {
    return evaluate(import_verified(m), in);
}

// The type of the one result of nodes over inputs.
std::string result_type(Inputs inputs, Nodes nodes, std::vector<Tensor> constants = {}) {
    std::string last = nodes.back().outputs[0];
    return type_of(import_verified(
        model(graph(std::move(inputs), {last}, std::move(nodes), std::move(constants)))));
}

// --- symbolic sizes ----------------------------------------------------------------------------

std::string reshaped(const std::string& x, const std::vector<int64_t>& shape) {
    return result_type({"x:" + x}, {node("Reshape", {"x", "s"}, {"y"})},
                       {i64_initializer("s", shape)});
}

TEST(SymbolicShapes, Reshape) {
    EXPECT_EQ(reshaped("f32[N,S,768]", {0, 0, 12, 64}), "f32[N,S,12,64]");
    EXPECT_EQ(reshaped("f32[N,S,12,64]", {0, -1, 768}), "f32[N,S,768]");
    EXPECT_EQ(reshaped("f32[N,S,12,64]", {-1, 768}), "f32[N*S,768]");
    EXPECT_EQ(reshaped("f32[N,3,8,8]", {-1, 192}), "f32[N,192]");
    EXPECT_EQ(reshaped("f32[]", {}), "f32[]");
}

TEST(SymbolicShapes, SqueezeWithoutAxesKeepsOpenSizes) {
    Model m = model(graph({"x:f32[N,1,T]"}, {"y"}, {node("Squeeze", {"x"}, {"y"})}));
    EXPECT_EQ(type_of(import_verified(m)), "f32[N,T]");
    auto y = run(m, {floats({2, 1, 3}, {1, 2, 3, 4, 5, 6})})[0];
    EXPECT_EQ(y.shape(), (Shape{2, 3}));
    EXPECT_EQ(elements(y), (V{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(run(m, {floats({0, 1, 3}, {})})[0].shape(), (Shape{0, 3}));
    for (Shape shape : {Shape{1, 1, 3}, Shape{3, 1, 1}}) {
        try {
            run(m, {floats(shape, {1, 2, 3})});
            ADD_FAILURE() << "no error";
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find(
                          "no axes are given and [N,T] of f32[N,1,T] holds a 1 in this run, which "
                          "changes the rank of the result: give axes, or build for this shape "
                          "alone (min = max)"),
                      std::string::npos)
                << e.what();
        }
    }
    EXPECT_EQ(result_type({"x:f32[1,4,1]"}, {node("Squeeze", {"x"}, {"y"})}), "f32[4]");
}

TEST(SymbolicShapes, ReshapeByShapeArithmetic) {
    // [x.shape[0], x.shape[1] * 2, -1], as exporters compute it
    EXPECT_EQ(
        result_type({"x:f32[N,S,768]"},
                    {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "at0"}, {"n"}),
                     node("Gather", {"s", "at1"}, {"l"}), node("Mul", {"l", "two"}, {"l2"}),
                     node("Unsqueeze", {"n", "axis"}, {"a"}),
                     node("Unsqueeze", {"l2", "axis"}, {"b"}),
                     node("Concat", {"a", "b", "rest"}, {"shape"}, {int_of("axis", 0)}),
                     node("Reshape", {"x", "shape"}, {"y"})},
                    {initializer("at0", integers({}, {0})), initializer("at1", integers({}, {1})),
                     initializer("two", integers({}, {2})), i64_initializer("axis", {0}),
                     i64_initializer("rest", {-1})}),
        "f32[N,2*S,384]");
}

std::string sliced(const std::string& x, int64_t start, int64_t end, int64_t step = 1) {
    return result_type({"x:" + x}, {node("Slice", {"x", "b", "e", "a", "s"}, {"y"})},
                       {i64_initializer("b", {start}), i64_initializer("e", {end}),
                        i64_initializer("a", {1}), i64_initializer("s", {step})});
}

TEST(SymbolicShapes, Slice) {
    EXPECT_EQ(sliced("f32[N,S,4]", 0, INT64_MAX), "f32[N,S,4]");
    EXPECT_EQ(sliced("f32[N,S,4]", -1, INT64_MAX), "f32[N,min(1,S),4]");
    EXPECT_EQ(sliced("f32[N,S,4]", 1, INT64_MAX), "f32[N,max(0,S-1),4]");
    EXPECT_EQ(sliced("f32[N,S,4]", 0, -1), "f32[N,max(0,S-1),4]");
    EXPECT_EQ(sliced("f32[N,S,4]", INT64_MAX, INT64_MIN, -1), "f32[N,S,4]");
    EXPECT_EQ(sliced("f32[N,8,4]", 6, 1, -2), "f32[N,3,4]");
    EXPECT_EQ(sliced("f32[N,2*S,4]", 0, INT64_MAX, 2), "f32[N,S,4]");
}

TEST(SymbolicShapes, SliceByAnotherSize) {
    // the first S of 512 positions, added to something of S positions
    EXPECT_EQ(result_type({"ids:i64[N,S]", "x:f32[N,S]"},
                          {node("Shape", {"ids"}, {"s"}, {int_of("start", 1)}),
                           node("Slice", {"table", "zero", "s", "one"}, {"p"}),
                           node("Add", {"x", "p"}, {"y"})},
                          {initializer("table", ingot::Tensor::zeros(DType::F32, {1, 512})),
                           i64_initializer("zero", {0}), i64_initializer("one", {1})}),
              "f32[N,S]");
}

TEST(SymbolicShapes, SplitAndConcat) {
    Model m = model(
        graph({"x:f32[N,2*S]"}, {"a", "b"},
              {node("Split", {"x"}, {"a", "b"}, {int_of("axis", 1), int_of("num_outputs", 2)})}));
    ingot::Graph g = import_verified(m);
    EXPECT_EQ(type_of(g, 0), "f32[N,S]");
    EXPECT_EQ(type_of(g, 1), "f32[N,S]");
    EXPECT_EQ(result_type({"x:f32[N,S]", "p:f32[N,P]"},
                          {node("Concat", {"p", "x"}, {"y"}, {int_of("axis", 1)})}),
              "f32[N,P+S]");
}

TEST(SymbolicShapes, RangeMasksAndExpand) {
    // arange(S) < length, expanded to [N, S]
    EXPECT_EQ(result_type(
                  {"ids:i64[N,S]"},
                  {node("Shape", {"ids"}, {"shape"}), node("Gather", {"shape", "one"}, {"s"}),
                   node("Range", {"zero", "s", "one"}, {"r"}),
                   node("Unsqueeze", {"r", "axis"}, {"u"}), node("Expand", {"u", "shape"}, {"y"})},
                  {initializer("zero", integers({}, {0})), initializer("one", integers({}, {1})),
                   i64_initializer("axis", {0})}),
              "i64[N,S]");
    EXPECT_EQ(result_type({"ids:i64[N,S]"},
                          {node("Shape", {"ids"}, {"s"}), node("ConstantOfShape", {"s"}, {"y"})}),
              "f32[N,S]");
}

TEST(SymbolicShapes, ReductionsAndIndices) {
    EXPECT_EQ(result_type({"x:f32[N,S,768]"}, {node("ReduceMean", {"x", "a"}, {"y"})},
                          {i64_initializer("a", {-1})}),
              "f32[N,S,1]");
    EXPECT_EQ(result_type({"x:f32[N,S]", "i:i64[N,1]"},
                          {node("GatherElements", {"x", "i"}, {"y"}, {int_of("axis", 1)})}),
              "f32[N,1]");
    EXPECT_EQ(result_type({"x:f32[N,S,4]", "i:i64[N,M,1]"},
                          {node("GatherND", {"x", "i"}, {"y"}, {int_of("batch_dims", 1)})}),
              "f32[N,M,4]");
    EXPECT_EQ(result_type({"x:f32[N,S]", "k:i64[1]"}, {node("TopK", {"x", "k"}, {"y", "i"})})
                  .substr(0, 7),
              "f32[N,?");
    EXPECT_EQ(result_type({"x:f32[N,4]", "r:i64[2]"}, {node("Tile", {"x", "two"}, {"y"})},
                          {i64_initializer("two", {1, 2})}),
              "f32[N,8]");
}

// --- inputs that only the run knows --------------------------------------------------------------

TEST(RunTimeInputs, SliceBoundsStepsAndAxes) {
    Model m = model(graph({"x:f32[A,B]", "b:i64[1]", "e:i64[1]", "a:i64[1]", "s:i64[1]"}, {"y"},
                          {node("Slice", {"x", "b", "e", "a", "s"}, {"y"})}));
    ingot::Graph g = import_verified(m);
    ingot::Tensor x = floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    auto slice = [&](int64_t b, int64_t e, int64_t a, int64_t s) {
        std::vector<ingot::Tensor> in = {x, integers({1}, {b}), integers({1}, {e}),
                                         integers({1}, {a}), integers({1}, {s})};
        return elements(evaluate(g, in)[0]);
    };
    EXPECT_EQ(slice(1, INT64_MAX, 1, 1), (V{1, 2, 3, 5, 6, 7}));
    EXPECT_EQ(slice(INT64_MAX, INT64_MIN, -1, -2), (V{3, 1, 7, 5}));
    EXPECT_EQ(slice(-1, 2, 0, INT64_MAX), (V{4, 5, 6, 7}));
    EXPECT_EQ(slice(3, 1, 1, 1), V{});
}

TEST(RunTimeInputs, ReshapeWithMinusOneAndZero) {
    Model m = model(graph({"x:f32[A,B]", "s:i64[3]"}, {"y"}, {node("Reshape", {"x", "s"}, {"y"})}));
    ingot::Graph g = import_verified(m);
    ingot::Tensor x = ingot::Tensor::zeros(DType::F32, {2, 6});
    EXPECT_EQ(evaluate(g, std::array{x, integers({3}, {0, -1, 2})})[0].shape(), (Shape{2, 3, 2}));
    EXPECT_EQ(evaluate(g, std::array{x, integers({3}, {4, 1, 3})})[0].shape(), (Shape{4, 1, 3}));
    EXPECT_THROW(evaluate(g, std::array{x, integers({3}, {5, 1, 1})}), Error);
}

TEST(RunTimeInputs, SplitThatLeavesLessForTheLastParts) {
    Model m =
        model(graph({"x:f32[A]"}, {"a", "b", "c", "d"},
                    {node("Split", {"x"}, {"a", "b", "c", "d"}, {int_of("num_outputs", 4)})}));
    ingot::Graph g = import_verified(m);
    for (const Shape& sizes : {Shape{2, 2, 2, 2}, {2, 2, 2, 1}, {2, 2, 1, 0}, {1, 0, 0, 0}}) {
        int64_t total = sizes[0] + sizes[1] + sizes[2] + sizes[3];
        std::vector<ingot::Tensor> parts =
            evaluate(g, std::array{ingot::Tensor::zeros(DType::F32, {total})});
        for (size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_EQ(parts[i].shape(), Shape{sizes[i]}) << "part " << i << " of " << total;
        }
    }
}

TEST(RunTimeInputs, ReductionAxes) {
    Model m = model(graph({"x:f32[A,B,C]", "a:i64[2]"}, {"y"},
                          {node("ReduceSum", {"x", "a"}, {"y"}, {int_of("keepdims", 0)})}));
    ingot::Tensor x = floats({2, 1, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(elements(run(m, {x, integers({2}, {0, -2})})[0]), (V{5, 7, 9}));
    EXPECT_EQ(elements(run(m, {x, integers({2}, {2, 1})})[0]), (V{6, 15}));
}

TEST(RunTimeInputs, SqueezeAndUnsqueezeAxes) {
    Model s =
        model(graph({"x:f32[A,B,C]", "a:i64[1]"}, {"y"}, {node("Squeeze", {"x", "a"}, {"y"})}));
    EXPECT_EQ(run(s, {floats({2, 1, 3}, V(6)), integers({1}, {-2})})[0].shape(), (Shape{2, 3}));
    EXPECT_THROW(run(s, {floats({2, 1, 3}, V(6)), integers({1}, {0})}), Error);
    Model u =
        model(graph({"x:f32[A,B]", "a:i64[2]"}, {"y"}, {node("Unsqueeze", {"x", "a"}, {"y"})}));
    EXPECT_EQ(run(u, {floats({2, 3}, V(6)), integers({2}, {-1, 1})})[0].shape(),
              (Shape{2, 1, 3, 1}));
}

// --- names of sizes ------------------------------------------------------------------------------

TEST(NamesOfSizes, ThoseThatSayNothingNeedNotAgree) {
    for (const char* name : {"?", "", "None", "-1", "unk"}) {
        SCOPED_TRACE(name);
        Model m = model(graph({"x:f32[A,B]", "z:f32[A,2]"}, {"y", "w"},
                              {node("Neg", {"x"}, {"y"}), node("Neg", {"z"}, {"w"})}));
        for (ShapeDim* d :
             {&m.graph.inputs[0].dims[0], &m.graph.inputs[0].dims[1], &m.graph.inputs[1].dims[0]}) {
            d->param = name;
        }
        auto out = run(m, {floats({2, 3}, V(6)), floats({1, 2}, V(2))});
        EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
        EXPECT_EQ(out[1].shape(), (Shape{1, 2}));
    }
    // Names of symbols bind.
    Model m = model(graph({"x:f32[A]", "z:f32[A]"}, {"y", "w"},
                          {node("Neg", {"x"}, {"y"}), node("Neg", {"z"}, {"w"})}));
    EXPECT_THROW(run(m, {floats({2}, V(2)), floats({1}, V(1))}), Error);
    m.graph.inputs[0].dims[0].param = m.graph.inputs[1].dims[0].param = "unk__7";
    EXPECT_THROW(run(m, {floats({2}, V(2)), floats({1}, V(1))}), Error);
}

} // namespace

} // namespace ingot::onnx::test
