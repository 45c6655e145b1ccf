// SPDX-License-Identifier: Apache-2.0
// Models that a careless rule of slim would break.
#include "slim_models.h"

namespace ingot::slim_test {

namespace {

using Ints = std::vector<int64_t>;

std::string size_of(Builder& b, const std::string& x, int64_t axis) {
    return b.node("Gather", {b.node("Shape", {x}), b.constant(Tensor::i64({axis}))});
}

const std::vector<SlimCase> view_misses = {
    {"reversed slice",
     "nop-slice",
     [](Builder& b) {
         b.output(b.node("Slice", {b.input("x", {4}), b.ints({-1}), b.ints({INT64_MIN}),
                                   b.ints({0}), b.ints({-1})}));
     },
     {{"Slice", 1}}},
    {"slices that overlap",
     "merge-slices",
     [](Builder& b) {
         const std::string x = b.node("Slice", {b.input("x", {9}), b.ints({-5}), b.ints({-1})});
         b.output(b.node("Slice", {x, b.ints({1}), b.ints({3})}));
     },
     {{"Slice", 2}}},
    {"inner slice used twice",
     "merge-slices",
     [](Builder& b) {
         const std::string x = b.node("Slice", {b.input("x", {9}), b.ints({2}), b.ints({8})});
         b.outputs({b.node("Slice", {x, b.ints({1}), b.ints({3})}), b.node("Relu", {x})});
     },
     {{"Relu", 1}, {"Slice", 2}}},
    {"pads that cancel",
     "nop-pad",
     [](Builder& b) {
         b.output(b.node("Pad", {b.input("x", {4}), b.ints({1, -1})}));
     },
     {{"Pad", 1}}},
    {"sizes that may be 0",
     "constant-reshape",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", "m", 6});
         const std::string list =
             b.node("Concat",
                    {size_of(b, x, 0), b.node("Mul", {size_of(b, x, 1), b.ints({2})}), b.ints({3})},
                    {{"axis", 0L}});
         b.output(b.node("Reshape", {x, list}));
     },
     {{"Concat", 1}, {"Gather", 2}, {"Mul", 1}, {"Reshape", 1}, {"Shape", 1}}},
    {"a transpose that moves data",
     "merge-views",
     [](Builder& b) {
         const std::string x = b.node("Transpose", {b.input("x", {2, 6})});
         b.output(b.node("Reshape", {x, b.ints({3, 4})}));
     },
     {{"Reshape", 1}, {"Transpose", 1}}},
    {"concatenations along other axes",
     "merge-concats",
     [](Builder& b) {
         const std::string x = b.input("x", {2, 2});
         const std::string y = b.node("Concat", {x, x}, {{"axis", 0L}});
         b.output(b.node("Concat", {y, b.input("z", {4, 1})}, {{"axis", 1L}}));
     },
     {{"Concat", 2}}},
    {"parts in another order",
     "concat-of-split",
     [](Builder& b) {
         const auto parts = b.nodes("Split", {b.input("x", {2, 4})}, 2, {{"axis", 1L}});
         b.output(b.node("Concat", {parts[1], parts[0]}, {{"axis", 1L}}));
     },
     {{"Concat", 1}, {"Split", 1}}},
    {"other axes put back",
     "merge-reduce-view",
     [](Builder& b) {
         const std::string x =
             b.node("ReduceSum", {b.input("x", {2, 3, 4}), b.ints({1})}, {{"keepdims", 0L}});
         b.output(b.node("Unsqueeze", {x, b.ints({2})}));
     },
     {{"ReduceSum", 1}, {"Unsqueeze", 1}}},
    {"Expand that widens",
     "needless-expand",
     [](Builder& b) {
         const std::string y = b.node("Expand", {b.input("y", {4}), b.ints({3, 4})});
         b.output(b.node("Add", {b.input("x", {1, 4}), y}));
     },
     {{"Add", 1}, {"Expand", 1}}},
    {"Resize that rounds to the same size",
     "nop-resize",
     [](Builder& b) {
         const std::string scales =
             b.constant(Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 1, 1.2F, 1}));
         b.output(b.node("Resize", {b.input("x", {1, 1, 4, 4}), "", scales},
                         {{"mode", std::string("linear")}}));
     },
     {{"Resize", 1}}},
};

const std::vector<SlimCase> arithmetic_misses = {
    {"x * 1 that broadcasts",
     "drop-unit",
     [](Builder& b) {
         const std::string ones =
             b.constant(Tensor::of<float>(DType::F32, {2, 1}, std::vector<float>{1, 1}));
         b.output(b.node("Mul", {b.input("x", {1, 3}), ones}));
     },
     {{"Mul", 1}}},
    {"0 - x and 1 / x",
     "drop-unit",
     [](Builder& b) {
         const std::string x = b.input("x", {3});
         b.outputs({b.node("Sub", {b.scalar(0), x}), b.node("Div", {b.scalar(1), x})});
     },
     {{"Div", 1}, {"Sub", 1}}},
    {"rounding by a large number",
     "merge-constants",
     [](Builder& b) {
         const std::string x = b.node("Add", {b.input("x", {3}), b.scalar(12582912)});
         b.output(b.node("Add", {x, b.scalar(-12582912)}));
     },
     {{"Add", 2}}},
    {"a product that vanishes",
     "merge-constants",
     [](Builder& b) {
         const std::string x = b.node("Mul", {b.input("x", {3}), b.scalar(1e-30)});
         b.output(b.node("Mul", {x, b.scalar(1e-20)}));
     },
     {{"Mul", 2}}},
    {"casts that round",
     "merge-casts",
     [](Builder& b) {
         const std::string x = b.node("Cast", {b.input("x", {3})}, {{"to", 6L}});
         b.output(b.node("Cast", {x}, {{"to", 1L}}));
     },
     {{"Cast", 2}}},
    {"other bounds",
     "repeated",
     [](Builder& b) {
         const std::string x = b.node("Clip", {b.input("x", {3}), b.scalar(0.1)});
         b.output(b.node("Clip", {x, b.scalar(0.2)}));
     },
     {{"Clip", 2}}},
    {"ArgMax along another axis",
     "monotone-argmax",
     [](Builder& b) {
         const std::string x = b.node("Softmax", {b.input("x", {4, 3})}, {{"axis", 1L}});
         b.output(b.node("ArgMax", {x}, {{"axis", 0L}}));
     },
     {{"ArgMax", 1}, {"Softmax", 1}}},
};

const std::vector<SlimCase> fusion_misses = {
    {"Conv used twice",
     "conv-affine",
     [](Builder& b) {
         const std::string y =
             b.node("Conv", {b.input("x", {1, 3, 4, 4}), b.weights({4, 3, 2, 2})});
         b.outputs({b.node("Add", {y, b.weights({4, 1, 1})}), b.node("Relu", {y})});
     },
     {{"Add", 1}, {"Conv", 1}, {"Relu", 1}}},
    {"a sum per row",
     "conv-affine",
     [](Builder& b) {
         const std::string y =
             b.node("Conv", {b.input("x", {1, 3, 5, 5}), b.weights({4, 3, 2, 2})});
         b.output(b.node("Add", {y, b.weights({4, 1})}));
     },
     {{"Add", 1}, {"Conv", 1}}},
    {"a sum that broadcasts the result",
     "conv-affine",
     [](Builder& b) {
         const std::string y =
             b.node("Conv", {b.input("x", {1, 3, 4, 4}), b.weights({1, 3, 2, 2})});
         b.output(b.node("Add", {y, b.weights({1, 4, 1, 1})}));
     },
     {{"Add", 1}, {"Conv", 1}}},
    {"padding with ones",
     "pad-conv",
     [](Builder& b) {
         const std::string x = b.node(
             "Pad", {b.input("x", {1, 3, 4, 4}), b.ints({0, 0, 1, 1, 0, 0, 1, 1}), b.scalar(1)});
         b.output(b.node("Conv", {x, b.weights({4, 3, 2, 2})}));
     },
     {{"Conv", 1}, {"Pad", 1}}},
    {"padding of channels",
     "pad-conv",
     [](Builder& b) {
         const std::string x =
             b.node("Pad", {b.input("x", {1, 2, 4, 4}), b.ints({0, 1, 0, 0, 0, 0, 0, 0})});
         b.output(b.node("Conv", {x, b.weights({4, 3, 2, 2})}));
     },
     {{"Conv", 1}, {"Pad", 1}}},
    {"zeros before a maximum",
     "pad-conv",
     [](Builder& b) {
         const std::string x =
             b.node("Pad", {b.input("x", {1, 2, 4, 4}), b.ints({0, 0, 1, 1, 0, 0, 1, 1})});
         b.output(b.node("MaxPool", {x}, {{"kernel_shape", Ints{3, 3}}}));
     },
     {{"MaxPool", 1}, {"Pad", 1}}},
    {"an average that does not count padding",
     "pad-conv",
     [](Builder& b) {
         const std::string x =
             b.node("Pad", {b.input("x", {1, 2, 4, 4}), b.ints({0, 0, 1, 0, 0, 0, 0, 0})});
         b.output(b.node("AveragePool", {x},
                         {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}));
     },
     {{"AveragePool", 1}, {"Pad", 1}}},
    {"a batch of matrices",
     "matmul-add",
     [](Builder& b) {
         const std::string y = b.node("MatMul", {b.input("x", {2, 5, 3}), b.weights({3, 4})});
         b.output(b.node("Add", {y, b.weights({4})}));
     },
     {{"Add", 1}, {"MatMul", 1}}},
    {"a sum that broadcasts the product",
     "matmul-add",
     [](Builder& b) {
         const std::string y = b.node("MatMul", {b.input("x", {1, 3}), b.weights({3, 4})});
         b.output(b.node("Add", {y, b.weights({5, 1})}));
     },
     {{"Add", 1}, {"MatMul", 1}}},
    {"a transposed Einsum",
     "einsum-matmul",
     [](Builder& b) {
         b.output(b.node("Einsum", {b.input("x", {2, 2, 3}), b.input("y", {2, 4, 3})},
                         {{"equation", std::string("bij,bkj->bik")}}));
     },
     {{"Einsum", 1}}},
    {"an Einsum that broadcasts its sum",
     "einsum-matmul",
     [](Builder& b) {
         b.output(b.node("Einsum", {b.input("x", {2, 2, 3}), b.input("y", {2, 3, 2})},
                         {{"equation", std::string("bij,bji->bij")}}));
     },
     {{"Einsum", 1}}},
    {"a state that is not zero",
     "zero-state",
     [](Builder& b) {
         b.output(b.nodes("GRU",
                          {b.input("x", {4, 1, 3}), b.weights({1, 6, 3}), b.weights({1, 6, 2}), "",
                           "", b.weights({1, 1, 2})},
                          1, {{"hidden_size", int64_t{2}}})[0]);
     },
     {{"GRU", 1}}},
};

} // namespace

std::vector<SlimCase> near_misses() {
    std::vector<SlimCase> out;
    for (const std::vector<SlimCase>* part : {&view_misses, &arithmetic_misses, &fusion_misses}) {
        out.insert(out.end(), part->begin(), part->end());
    }
    return out;
}

} // namespace ingot::slim_test
