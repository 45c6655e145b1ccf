// SPDX-License-Identifier: Apache-2.0
// Small models for the structural rules of slim.
#include "slim_models.h"

namespace ingot::slim_test {

namespace {

using Ints = std::vector<int64_t>;

const std::vector<std::string> facts = {"same-value"};

std::string picture(Builder& b) {
    return b.input("x", {"n", 3, 5, 5});
}

std::string size_of(Builder& b, const std::string& x, int64_t axis) {
    return b.node("Gather", {b.node("Shape", {x}), b.constant(Tensor::i64({axis}))});
}

const std::vector<SlimCase> constant_cases = {
    {"Constant node",
     "constant-to-initializer",
     [](Builder& b) {
         const std::string c = b.node("Constant", {}, {{"value_float", 2.5F}});
         b.output(b.node("Mul", {b.input("x", {3}), c}));
     },
     {{"Mul", 1}}},
    {"Constant output",
     "dead-node",
     [](Builder& b) {
         b.node("Relu", {b.input("x", {3})});
         b.output(b.node("Constant", {}, {{"value_ints", Ints{1, 2}}}));
     },
     {{"Constant", 1}}},
    {"static shape",
     "known-value",
     [](Builder& b) {
         const std::string x = b.input("x", {2, 3, 4});
         const std::string rows = b.node("Mul", {size_of(b, x, 0), b.node("Neg", {b.ints({-3})})});
         b.output(b.node("Reshape", {x, b.node("Concat", {rows, b.ints({4})}, {{"axis", 0L}})}));
     },
     {{"Reshape", 1}}},
    {"arithmetic",
     "fold",
     [](Builder& b) {
         const std::string w = b.node("Transpose", {b.weights({3, 2})});
         b.output(b.node("Mul", {b.input("x", {2, 3}), b.node("Exp", {w})}));
     },
     {{"Mul", 1}}},
    {"large on the way",
     "fold",
     [](Builder& b) {
         const std::string wide = b.node("Expand", {b.weights({1, 8}), b.ints({1000, 8})});
         const std::string sum = b.node("ReduceSum", {wide, b.ints({0})}, {{"keepdims", 1L}});
         b.output(b.node("Mul", {b.input("x", {2, 8}), sum}));
     },
     {{"Mul", 1}}},
    {"folded output",
     "fold",
     [](Builder& b) {
         b.output(b.node("Abs", {b.weights({3})}));
         b.output(b.node("Relu", {b.input("x", {2})}));
     },
     {{"Constant", 1}, {"Relu", 1}}},
    {"dead",
     "dead-node",
     [](Builder& b) {
         const std::string x = b.input("x", {2});
         b.node("Exp", {b.node("Neg", {x})});
         b.output(b.node("Relu", {x}));
     },
     {{"Relu", 1}}},
    {"unused",
     "unused-initializer",
     [](Builder& b) {
         b.weights({100});
         b.output(b.node("Relu", {b.input("x", {2})}));
     },
     {{"Relu", 1}}},
};

const std::vector<SlimCase> equality_cases = {
    {"equal sizes",
     "same-value",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string y = b.input("y", {"n", 7});
         b.outputs({b.node("Add", {size_of(b, x, 0), b.ints({1})}),
                    b.node("Sub", {size_of(b, y, 0), b.ints({1})})});
     },
     {{"Shape", 1}, {"Gather", 1}, {"Add", 1}, {"Sub", 1}}},
    {"there and back",
     "same-value",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string y = b.node("Unsqueeze", {x, b.ints({1})});
         b.output(b.node("Relu", {b.node("Squeeze", {y, b.ints({1})})}));
     },
     {{"Relu", 1}}},
    {"computed twice",
     "common-subexpression",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string a = b.nodes("TopK", {x, b.ints({2})}, 2)[0];
         const std::string c = b.nodes("TopK", {x, b.ints({2})}, 2)[1];
         b.output(b.node("Add", {a, b.node("Cast", {c}, {{"to", 1L}})}));
     },
     {{"Add", 1}, {"Cast", 1}, {"TopK", 1}},
     17,
     facts},
    {"computed twice without an operand",
     "common-subexpression",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string a = b.node("Clip", {x, "", b.scalar(0.5)});
         const std::string c = b.node("Clip", {x, "", b.scalar(0.5)});
         b.outputs({b.node("Clip", {a, b.scalar(0)}), b.node("Exp", {c})});
     },
     {{"Clip", 2}, {"Exp", 1}},
     17,
     facts},
    {"tied weights",
     "duplicate-initializer",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const Tensor w = Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 2, 3, 4});
         b.output(b.node("Mul", {b.node("Add", {x, b.constant(w)}), b.constant(w.clone())}));
     },
     {{"Add", 1}, {"Mul", 1}}},
};

const std::vector<SlimCase> identity_cases = {
    {"Identity",
     "nop-identity",
     [](Builder& b) { b.output(b.node("Identity", {b.node("Relu", {b.input("x", {3})})})); },
     {{"Relu", 1}},
     17,
     facts},
    {"Dropout",
     "nop-dropout",
     [](Builder& b) {
         const std::string no = b.constant(Tensor::scalar_i64(DType::Bool, 0));
         const std::string x = b.node("Dropout", {b.input("x", {3}), b.scalar(0.5), no});
         b.output(b.node("Relu", {x}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Cast",
     "nop-cast",
     [](Builder& b) {
         b.output(b.node("Relu", {b.node("Cast", {b.input("x", {3})}, {{"to", 1L}})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Transpose",
     "nop-transpose",
     [](Builder& b) {
         const std::string x = b.input("x", {3, "n"});
         b.output(b.node("Relu", {b.node("Transpose", {x}, {{"perm", Ints{0, 1}}})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Pad",
     "nop-pad",
     [](Builder& b) {
         const std::string x = b.input("x", {3, "n"});
         b.output(b.node("Relu", {b.node("Pad", {x, b.ints({0, 0, 0, 0})})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Sum and Concat",
     "nop-single",
     [](Builder& b) {
         const std::string x = b.input("x", {3, "n"});
         b.output(b.node("Relu", {b.node("Sum", {b.node("Concat", {x}, {{"axis", 1L}})})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Split",
     "nop-split",
     [](Builder& b) {
         const std::string x = b.input("x", {3, 4});
         b.output(b.node("Relu", {b.node("Split", {x, b.ints({4})}, {{"axis", 1L}})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"views",
     "nop-view",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string y = b.node("Expand", {x, b.ints({1, 4})});
         const std::string z = b.node("Tile", {y, b.ints({1, 1})});
         b.output(b.node("Relu", {b.node("Reshape", {z, b.ints({-1, 4})})}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Slice",
     "nop-slice",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string y = b.node("Slice", {x, b.ints({0, 0}), b.ints({INT64_MAX, 4})});
         b.output(b.node("Relu", {y}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"Resize",
     "nop-resize",
     [](Builder& b) {
         const std::string scales =
             b.constant(Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 1, 1, 1}));
         const std::string y =
             b.node("Resize", {picture(b), "", scales}, {{"mode", std::string("linear")}});
         b.output(b.node("Relu", {y}));
     },
     {{"Relu", 1}},
     17,
     facts},
    {"reduction over one element",
     "nop-reduce",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 1, 4});
         b.output(b.node("Relu", {b.node("ReduceMax", {x}, {{"axes", Ints{1}}})}));
     },
     {{"Relu", 1}},
     17,
     facts},
};

const std::vector<SlimCase> shape_cases = {
    {"Reshape to a computed batch",
     "constant-reshape",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 6, 2});
         const std::string list =
             b.node("Concat", {size_of(b, x, 0), b.ints({12})}, {{"axis", 0L}});
         b.output(b.node("Reshape", {x, list}));
     },
     {{"Reshape", 1}}},
    {"Reshape to a computed product",
     "constant-reshape",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", "m", 2});
         const std::string rows = b.node("Mul", {size_of(b, x, 0), size_of(b, x, 1)});
         const std::string list = b.node("Concat", {rows, b.ints({2})}, {{"axis", 0L}});
         b.output(b.node("Reshape", {x, list}));
     },
     {{"Reshape", 1}}},
    {"Expand",
     "constant-expand",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 1});
         const std::string list = b.node("Concat", {size_of(b, x, 0), b.ints({5})}, {{"axis", 0L}});
         b.output(b.node("Expand", {x, list}));
     },
     {{"Expand", 1}}},
    {"zero states",
     "zero-state",
     [](Builder& b) {
         const std::string x = b.input("x", {4, "n", 3});
         const std::string list =
             b.node("Concat", {b.ints({1}), size_of(b, x, 1), b.ints({2})}, {{"axis", 0L}});
         const std::string zeros = b.node("ConstantOfShape", {list});
         b.output(b.nodes(
             "LSTM",
             {x, b.weights({1, 8, 3}), b.weights({1, 8, 2}), b.weights({1, 16}), "", zeros, zeros},
             1, {{"hidden_size", 2L}})[0]);
     },
     {{"LSTM", 1}}},
    {"Slice of Shape",
     "slice-of-shape",
     [](Builder& b) {
         const std::string shape = b.node("Shape", {b.input("x", {"n", "m", 2})});
         b.output(b.node("Slice", {shape, b.ints({0}), b.ints({2})}));
     },
     {{"Shape", 1}}},
    {"Expand before Add",
     "needless-expand",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4});
         const std::string y = b.node("Expand", {b.input("y", {4}), b.node("Shape", {x})});
         b.output(b.node("Add", {x, y}));
     },
     {{"Add", 1}}},
};

const std::vector<SlimCase> view_cases = {
    {"two transposes",
     "merge-transposes",
     [](Builder& b) {
         const std::string x =
             b.node("Transpose", {b.input("x", {2, 3, "n"})}, {{"perm", Ints{1, 2, 0}}});
         b.output(b.node("Transpose", {x}, {{"perm", Ints{0, 2, 1}}}));
     },
     {{"Transpose", 1}}},
    {"a transpose undone",
     "merge-transposes",
     [](Builder& b) {
         const std::string x = b.node("Transpose", {b.input("x", {2, 3})});
         b.outputs({x, b.node("Relu", {b.node("Transpose", {x})})});
     },
     {{"Relu", 1}, {"Transpose", 1}}},
    {"two unsqueezes",
     "merge-squeezes",
     [](Builder& b) {
         const std::string x = b.node("Unsqueeze", {b.input("x", {"n", 3}), b.ints({-1})});
         b.output(b.node("Unsqueeze", {x, b.ints({0, 2})}));
     },
     {{"Unsqueeze", 1}}},
    {"two squeezes",
     "merge-squeezes",
     [](Builder& b) {
         const std::string x =
             b.node("Squeeze", {b.input("x", {1, "n", 1, 3})}, {{"axes", Ints{-2}}});
         b.output(b.node("Squeeze", {x}, {{"axes", Ints{0}}}));
     },
     {{"Squeeze", 1}},
     11},
    {"Reshape of Flatten",
     "merge-views",
     [](Builder& b) {
         const std::string x = b.node("Flatten", {b.input("x", {"n", 3, 4})});
         b.output(b.node("Reshape", {x, b.ints({-1, 2, 6})}));
     },
     {{"Reshape", 1}}},
    {"a transpose of ones",
     "merge-views",
     [](Builder& b) {
         const std::string x =
             b.node("Transpose", {b.input("x", {"n", 1, 6})}, {{"perm", Ints{0, 2, 1}}});
         b.output(b.node("Reshape", {x, b.ints({0, 3, 2})}));
     },
     {{"Reshape", 1}}},
    {"slices of different axes",
     "merge-slices",
     [](Builder& b) {
         const std::string x = b.input("x", {4, 6});
         const std::string y =
             b.node("Slice", {x, b.ints({-1}), b.ints({-7}), b.ints({1}), b.ints({-2})});
         b.output(b.node("Slice", {y, b.ints({1}), b.ints({3}), b.ints({0})}));
     },
     {{"Slice", 1}}},
    {"slices of one axis",
     "merge-slices",
     [](Builder& b) {
         const std::string x = b.input("x", {9, "n"});
         const std::string y = b.node("Slice", {x, b.ints({2}), b.ints({7})});
         b.output(b.node("Slice", {y, b.ints({1}), b.ints({INT64_MAX})}));
     },
     {{"Slice", 1}}},
    {"slices in old opsets",
     "merge-slices",
     [](Builder& b) {
         const std::string x =
             b.node("Slice", {b.input("x", {4, 6})}, {{"starts", Ints{1}}, {"ends", Ints{3}}});
         b.output(
             b.node("Slice", {x}, {{"starts", Ints{2}}, {"ends", Ints{-1}}, {"axes", Ints{1}}}));
     },
     {{"Slice", 1}},
     9},
    {"concatenations",
     "merge-concats",
     [](Builder& b) {
         const std::string x = b.input("x", {2, "n"});
         const std::string y = b.input("y", {2, "m"});
         const std::string inner = b.node("Concat", {y, x}, {{"axis", -1L}});
         b.output(b.node("Concat", {x, inner, y}, {{"axis", 1L}}));
     },
     {{"Concat", 1}}},
    {"an empty part",
     "drop-empty-part",
     [](Builder& b) {
         const std::string x = b.input("x", {2, "n"});
         const std::string y = b.input("y", {2, "m"});
         b.output(b.node("Concat", {x, b.weights({2, 0}), y}, {{"axis", 1L}}));
     },
     {{"Concat", 1}}},
    {"parts put together",
     "concat-of-split",
     [](Builder& b) {
         const std::vector<std::string> parts =
             b.nodes("Split", {b.input("x", {2, 6}), b.ints({2, 4})}, 2, {{"axis", 1L}});
         b.output(b.node("Relu", {b.node("Concat", parts, {{"axis", -1L}})}));
     },
     {{"Relu", 1}}},
};

} // namespace

std::vector<SlimCase> structural_cases() {
    std::vector<SlimCase> out;
    for (const std::vector<SlimCase>* part :
         {&constant_cases, &equality_cases, &identity_cases, &shape_cases, &view_cases}) {
        out.insert(out.end(), part->begin(), part->end());
    }
    return out;
}

} // namespace ingot::slim_test
