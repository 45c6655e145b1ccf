// SPDX-License-Identifier: Apache-2.0
// Small models for the rules of slim that fuse and compute.
#include "slim_models.h"

#include <limits>

namespace ingot::slim_test {

namespace {

using Ints = std::vector<int64_t>;

const std::vector<std::string> facts = {"same-value"};

// A Conv of three channels to four.
std::string conv(Builder& b, const std::string& x, bool bias = false) {
    std::vector<std::string> inputs = {x, b.weights({4, 3, 2, 2})};
    if (bias) {
        inputs.push_back(b.weights({4}));
    }
    return b.node("Conv", inputs);
}

std::string picture(Builder& b) {
    return b.input("x", {"n", 3, 5, 5});
}

std::string batch_norm(Builder& b, const std::string& x, int64_t channels) {
    const std::string variance = b.constant(Tensor::of<float>(
        DType::F32, {channels}, std::vector<float>(static_cast<size_t>(channels), 0.7F)));
    return b.node("BatchNormalization", {x, b.weights({channels}), b.weights({channels}),
                                         b.weights({channels}), variance});
}

std::string size_of(Builder& b, const std::string& x, int64_t axis) {
    return b.node("Gather", {b.node("Shape", {x}), b.constant(Tensor::i64({axis}))});
}

onnx::Graph branch(const std::string& prefix, const std::string& op, const std::string& x) {
    Builder b(17, prefix);
    b.output(b.node(op, {x}));
    return b.graph;
}

const std::vector<SlimCase> pointwise_cases = {
    {"neutral operands",
     "drop-unit",
     [](Builder& b) {
         std::string x = b.input("x", {"n", 3});
         x = b.node("Add", {b.scalar(0), x});
         x = b.node("Mul", {x, b.constant(Tensor::of<float>(DType::F32, {3},
                                                            std::vector<float>{1, 1, 1}))});
         x = b.node("Div", {b.node("Sub", {x, b.scalar(0)}), b.scalar(1)});
         b.output(b.node("Relu", {b.node("Pow", {x, b.scalar(1)})}));
     },
     {{"Relu", 1}}},
    {"Where",
     "decided-where",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 3});
         const std::string yes = b.constant(Tensor::scalar_i64(DType::Bool, 1));
         b.output(b.node("Relu", {b.node("Where", {yes, x, b.scalar(3)})}));
     },
     {{"Relu", 1}}},
    {"Where Not",
     "where-not",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 3});
         const std::string c = b.node("Not", {b.input("c", {"n", 1}, DType::Bool)});
         b.output(b.node("Where", {c, x, b.scalar(3)}));
     },
     {{"Where", 1}}},
    {"negated twice",
     "undone",
     [](Builder& b) {
         const std::string x = b.node("Neg", {b.node("Neg", {b.input("x", {"n"})})});
         b.output(b.node("Relu", {x}));
     },
     {{"Relu", 1}}},
    {"repeated",
     "repeated",
     [](Builder& b) {
         std::string x = b.node("Relu", {b.node("Relu", {b.input("x", {"n"})})});
         const std::string low = b.scalar(0.1);
         x = b.node("Clip", {b.node("Clip", {x, low}), low});
         b.output(x);
     },
     {{"Clip", 1}, {"Relu", 1}},
     17,
     facts},
    {"casts",
     "merge-casts",
     [](Builder& b) {
         const std::string x = b.node("Cast", {b.input("x", {"n"}, DType::I16)}, {{"to", 1L}});
         b.output(b.node("Cast", {x}, {{"to", 7L}}));
     },
     {{"Cast", 1}}},
    {"constants",
     "merge-constants",
     [](Builder& b) {
         const std::string x = b.node("Mul", {b.scalar(3), b.input("x", {"n", 3})});
         b.output(b.node("Mul", {x, b.weights({3})}));
     },
     {{"Mul", 1}}},
};

const std::vector<SlimCase> reduce_cases = {
    {"axes put back",
     "merge-reduce-view",
     [](Builder& b) {
         const std::string x =
             b.node("ReduceSum", {b.input("x", {"n", 3, 4}), b.ints({-1, 1})}, {{"keepdims", 0L}});
         b.output(b.node("Unsqueeze", {x, b.ints({1, 2})}));
     },
     {{"ReduceSum", 1}}},
    {"axes taken out",
     "merge-reduce-view",
     [](Builder& b) {
         const std::string x =
             b.node("ReduceMean", {b.input("x", {"n", 3, 4})}, {{"axes", Ints{2}}});
         b.output(b.node("Squeeze", {x}, {{"axes", Ints{-1}}}));
     },
     {{"ReduceMean", 1}},
     11},
    {"Log of Softmax",
     "log-softmax",
     [](Builder& b) {
         b.output(b.node("Log", {b.node("Softmax", {b.input("x", {"n", 3})})}));
     },
     {{"LogSoftmax", 1}}},
    {"ArgMax of Softmax",
     "monotone-argmax",
     [](Builder& b) {
         const std::string x = b.node("Softmax", {b.input("x", {"n", 3})});
         b.output(b.node("ArgMax", {x}, {{"axis", 1L}}));
     },
     {{"ArgMax", 1}}},
    {"root mean square",
     "rms-norm",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 3, 4});
         const std::string mean =
             b.node("ReduceMean", {b.node("Pow", {x, b.scalar(2)}), b.ints({-1})});
         const std::string root = b.node("Sqrt", {b.node("Add", {mean, b.scalar(1e-3)})});
         b.output(b.node("Mul", {b.weights({4}), b.node("Div", {x, root})}));
     },
     {{"RMSNormalization", 1}},
     23},
};

const std::vector<SlimCase> conv_cases = {
    {"normalised",
     "conv-affine",
     [](Builder& b) { b.output(batch_norm(b, conv(b, picture(b)), 4)); },
     {{"Conv", 1}}},
    {"normalised transposed",
     "conv-affine",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", 4, 3, 3});
         const std::string y =
             b.node("ConvTranspose", {x, b.weights({4, 3, 2, 2}), b.weights({6})}, {{"group", 2L}});
         b.output(batch_norm(b, y, 6));
     },
     {{"ConvTranspose", 1}}},
    {"shifted and scaled",
     "conv-affine",
     [](Builder& b) {
         std::string y = b.node("Sub", {b.weights({4, 1, 1}), conv(b, picture(b), true)});
         y = b.node("Mul", {y, b.weights({1, 4, 1, 1})});
         b.output(b.node("Div", {b.node("Add", {y, b.scalar(0.5)}), b.scalar(3)}));
     },
     {{"Conv", 1}}},
    {"scaled before",
     "mul-conv",
     [](Builder& b) {
         const std::string x = b.node("Mul", {picture(b), b.weights({3, 1, 1})});
         b.output(b.node("Conv", {x, b.weights({4, 3, 2, 2})}, {{"pads", Ints{1, 1, 0, 1}}}));
     },
     {{"Conv", 1}}},
    {"padded Conv",
     "pad-conv",
     [](Builder& b) {
         const std::string x =
             b.node("Pad", {picture(b), b.ints({0, 0, 1, 2, 0, 0, 0, 1}), b.scalar(0)});
         b.output(b.node("Conv", {x, b.weights({4, 3, 2, 2})}, {{"pads", Ints{1, 0, 0, 0}}}));
     },
     {{"Conv", 1}}},
    {"padded Conv by axes",
     "pad-conv",
     [](Builder& b) {
         const std::string x = b.node("Pad", {picture(b), b.ints({2, 1}), "", b.ints({-1})});
         b.output(b.node("Conv", {x, b.weights({4, 3, 2, 2})}));
     },
     {{"Conv", 1}},
     18},
    {"padded average",
     "pad-conv",
     [](Builder& b) {
         const std::string x = b.node("Pad", {picture(b), b.ints({0, 0, 1, 0, 0, 0, 0, 1})});
         b.output(b.node("AveragePool", {x}, {{"kernel_shape", Ints{2, 3}}}));
     },
     {{"AveragePool", 1}}},
    {"padded maximum",
     "pad-conv",
     [](Builder& b) {
         const std::string low = b.scalar(-std::numeric_limits<double>::infinity());
         const std::string x = b.node("Pad", {picture(b), b.ints({0, 0, 1, 1, 0, 0, 1, 1}), low});
         b.output(b.node("MaxPool", {x}, {{"kernel_shape", Ints{3, 3}}}));
     },
     {{"MaxPool", 1}}},
};

const std::vector<SlimCase> gemm_cases = {
    {"MatMul and Add",
     "matmul-add",
     [](Builder& b) {
         const std::string y = b.node("MatMul", {b.input("x", {"n", 3}), b.weights({3, 4})});
         b.output(b.node("Add", {b.input("c", {4}), y}));
     },
     {{"Gemm", 1}}},
    {"Gemm and Add",
     "gemm-add",
     [](Builder& b) {
         const std::string y =
             b.node("Gemm", {b.input("x", {"n", 3}), b.weights({3, 4}), b.weights({4})},
                    {{"alpha", 0.5F}});
         b.output(b.node("Add", {y, b.weights({1, 4})}));
     },
     {{"Gemm", 1}}},
    {"Gemm normalised",
     "gemm-affine",
     [](Builder& b) {
         const std::string y =
             b.node("Gemm", {b.input("x", {"n", 3}), b.weights({4, 3}), b.weights({4})},
                    {{"alpha", 0.5F}, {"beta", 2.0F}, {"transB", 1L}});
         b.output(batch_norm(b, y, 4));
     },
     {{"Gemm", 1}}},
    {"Gemm transposed",
     "transpose-gemm",
     [](Builder& b) {
         const std::string x = b.node("Transpose", {b.input("x", {3, "n"})});
         const std::string w = b.node("Transpose", {b.input("w", {3, 4})});
         b.output(b.node("Gemm", {x, w, b.weights({4})}, {{"transB", 1L}}));
         b.graph.inputs[1].dims[0] = {4, ""};
         b.graph.inputs[1].dims[1] = {3, ""};
         b.graph.nodes[2].attributes.clear();
     },
     {{"Gemm", 1}}},
    {"MatMul transposed",
     "transpose-gemm",
     [](Builder& b) {
         const std::string y = b.node("Transpose", {b.input("y", {4, 3})});
         b.output(b.node("MatMul", {b.input("x", {"n", 3}), y}));
     },
     {{"Gemm", 1}}},
    {"Einsum",
     "einsum-matmul",
     [](Builder& b) {
         b.output(b.node("Einsum", {b.input("x", {"n", 2, 3}), b.input("y", {"n", 3, 4})},
                         {{"equation", std::string("bij, bjk -> bik")}}));
     },
     {{"MatMul", 1}}},
    {"flattened batch",
     "batched-gemm",
     [](Builder& b) {
         const std::string x = b.input("x", {"n", "m", 3});
         const std::string y = b.node(
             "Gemm", {b.node("Reshape", {x, b.ints({-1, 3})}), b.weights({4, 3}), b.weights({4})},
             {{"transB", 1L}});
         const std::string list =
             b.node("Concat", {size_of(b, x, 0), size_of(b, x, 1), b.ints({4})}, {{"axis", 0L}});
         b.output(b.node("Reshape", {y, list}));
     },
     {{"Add", 1}, {"MatMul", 1}}},
    {"decided If",
     "decided-if",
     [](Builder& b) {
         const std::string x = b.input("x", {2});
         const std::string no = b.constant(Tensor::scalar_i64(DType::Bool, 0));
         b.output(b.node("Neg", {b.node("If", {no},
                                        {{"then_branch", branch("u", "Exp", x)},
                                         {"else_branch", branch("v", "Abs", x)}})}));
     },
     {{"Abs", 1}, {"Neg", 1}}},
};

} // namespace

std::vector<SlimCase> fusion_cases() {
    std::vector<SlimCase> out;
    for (const std::vector<SlimCase>* part :
         {&pointwise_cases, &reduce_cases, &conv_cases, &gemm_cases}) {
        out.insert(out.end(), part->begin(), part->end());
    }
    return out;
}

} // namespace ingot::slim_test
