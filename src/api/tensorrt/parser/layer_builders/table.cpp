// SPDX-License-Identifier: Apache-2.0
// The ONNX operators with a layer class of their own.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"

#include <map>

namespace ingot::api {

namespace {

constexpr std::string_view contrib = "com.microsoft";

constexpr LayerBuilderRow rows[] = {
    {"", "Conv", build_conv},
    {"", "ConvTranspose", build_conv_transpose},
    {"", "MaxPool", build_pool},
    {"", "AveragePool", build_pool},
    {"", "GlobalAveragePool", build_global_pool},
    {"", "GlobalMaxPool", build_global_pool},
    {"", "Resize", build_resize},
    {"", "Upsample", build_upsample},
    {"", "GridSample", build_grid_sample},
    {contrib, "GridSample", build_grid_sample},

    {"", "Relu", build_activation},
    {"", "Sigmoid", build_activation},
    {"", "Tanh", build_activation},
    {"", "LeakyRelu", build_activation},
    {"", "Elu", build_activation},
    {"", "Selu", build_activation},
    {"", "Softsign", build_activation},
    {"", "Softplus", build_activation},
    {"", "HardSigmoid", build_activation},
    {"", "ThresholdedRelu", build_activation},
    {"", "Gelu", build_activation},
    {contrib, "Gelu", build_activation},
    {"", "Clip", build_clip},
    {"", "PRelu", build_prelu},

    {"", "Exp", build_unary},
    {"", "Log", build_unary},
    {"", "Sqrt", build_unary},
    {"", "Reciprocal", build_unary},
    {"", "Abs", build_unary},
    {"", "Neg", build_unary},
    {"", "Sin", build_unary},
    {"", "Cos", build_unary},
    {"", "Tan", build_unary},
    {"", "Sinh", build_unary},
    {"", "Cosh", build_unary},
    {"", "Asin", build_unary},
    {"", "Acos", build_unary},
    {"", "Atan", build_unary},
    {"", "Asinh", build_unary},
    {"", "Acosh", build_unary},
    {"", "Atanh", build_unary},
    {"", "Ceil", build_unary},
    {"", "Floor", build_unary},
    {"", "Erf", build_unary},
    {"", "Not", build_unary},
    {"", "Sign", build_unary},
    {"", "Round", build_unary},
    {"", "IsInf", build_unary},
    {"", "IsNaN", build_unary},

    {"", "Add", build_binary},
    {"", "Mul", build_binary},
    {"", "Max", build_binary},
    {"", "Min", build_binary},
    {"", "Sum", build_binary},
    {"", "Sub", build_binary},
    {"", "Div", build_binary},
    {"", "Pow", build_binary},
    {"", "And", build_binary},
    {"", "Or", build_binary},
    {"", "Xor", build_binary},
    {"", "Equal", build_binary},
    {"", "Greater", build_binary},
    {"", "Less", build_binary},

    {"", "Where", build_where},
    {"", "Cast", build_cast},
    {"", "CastLike", build_cast},
    {"", "Identity", build_identity},
    {"", "Dropout", build_identity},

    {"", "Softmax", build_softmax},
    {"", "ReduceSum", build_reduce},
    {"", "ReduceProd", build_reduce},
    {"", "ReduceMax", build_reduce},
    {"", "ReduceMin", build_reduce},
    {"", "ReduceMean", build_reduce},
    {"", "TopK", build_topk},
    {"", "MatMul", build_matmul},
    {"", "Gemm", build_gemm},
    {"", "Einsum", build_einsum},
    {"", "CumSum", build_cumsum},

    {"", "LRN", build_lrn},
    {"", "BatchNormalization", build_batch_norm},
    {"", "InstanceNormalization", build_instance_norm},
    {"", "GroupNormalization", build_group_norm},
    {"", "LayerNormalization", build_layer_norm},
    {contrib, "LayerNormalization", build_layer_norm},

    {"", "Constant", build_constant},
    {"", "Concat", build_concat},
    {"", "Reshape", build_reshape},
    {"", "Flatten", build_flatten},
    {"", "Transpose", build_transpose},
    {"", "Squeeze", build_squeeze},
    {"", "Unsqueeze", build_unsqueeze},
    {"", "Shape", build_shape},
    {"", "ConstantOfShape", build_constant_of_shape},
    {"", "Range", build_range},
    {"", "RandomNormal", build_random},
    {"", "RandomUniform", build_random},
    {"", "Slice", build_slice},
    {"", "Split", build_split},
    {"", "Pad", build_pad},
    {"", "Expand", build_expand},
    {"", "Tile", build_tile},

    {"", "Gather", build_gather},
    {"", "GatherElements", build_gather_elements},
    {"", "GatherND", build_gather_nd},
    {"", "Scatter", build_scatter},
    {"", "ScatterElements", build_scatter},
    {"", "ScatterND", build_scatter},
    {"", "OneHot", build_one_hot},
    {"", "NonZero", build_non_zero},
    {"", "ReverseSequence", build_reverse_sequence},
    {"", "TensorScatter", build_tensor_scatter},
    {"", "RotaryEmbedding", build_rotary},
    {"", "QuantizeLinear", build_quantize},
    {contrib, "QuantizeLinear", build_quantize},
    {"", "DequantizeLinear", build_dequantize},
    {contrib, "DequantizeLinear", build_dequantize},
};

} // namespace

LayerBuilder find_layer_builder(std::string_view domain, std::string_view op) {
    using Name = std::pair<std::string_view, std::string_view>;
    static const auto table = [] {
        std::map<Name, LayerBuilder> m;
        for (const LayerBuilderRow& row : rows) {
            m.emplace(Name(row.domain, row.op), row.build);
        }
        return m;
    }();
    auto it = table.find({domain, op});
    return it == table.end() ? nullptr : it->second;
}

} // namespace ingot::api
