// SPDX-License-Identifier: Apache-2.0
// The ONNX operators with a layer class of their own.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"

#include <map>

namespace ingot::api {

namespace {

constexpr std::string_view contrib = "com.microsoft";

constexpr ReaderRow rows[] = {
    {"", "Conv", read_conv},
    {"", "ConvTranspose", read_conv_transpose},
    {"", "MaxPool", read_pool},
    {"", "AveragePool", read_pool},
    {"", "GlobalAveragePool", read_global_pool},
    {"", "GlobalMaxPool", read_global_pool},
    {"", "Resize", read_resize},
    {"", "Upsample", read_upsample},
    {"", "GridSample", read_grid_sample},
    {contrib, "GridSample", read_grid_sample},

    {"", "Relu", read_activation},
    {"", "Sigmoid", read_activation},
    {"", "Tanh", read_activation},
    {"", "LeakyRelu", read_activation},
    {"", "Elu", read_activation},
    {"", "Selu", read_activation},
    {"", "Softsign", read_activation},
    {"", "Softplus", read_activation},
    {"", "HardSigmoid", read_activation},
    {"", "ThresholdedRelu", read_activation},
    {"", "Gelu", read_activation},
    {contrib, "Gelu", read_activation},
    {"", "Clip", read_clip},
    {"", "PRelu", read_prelu},

    {"", "Exp", read_unary},
    {"", "Log", read_unary},
    {"", "Sqrt", read_unary},
    {"", "Reciprocal", read_unary},
    {"", "Abs", read_unary},
    {"", "Neg", read_unary},
    {"", "Sin", read_unary},
    {"", "Cos", read_unary},
    {"", "Tan", read_unary},
    {"", "Sinh", read_unary},
    {"", "Cosh", read_unary},
    {"", "Asin", read_unary},
    {"", "Acos", read_unary},
    {"", "Atan", read_unary},
    {"", "Asinh", read_unary},
    {"", "Acosh", read_unary},
    {"", "Atanh", read_unary},
    {"", "Ceil", read_unary},
    {"", "Floor", read_unary},
    {"", "Erf", read_unary},
    {"", "Not", read_unary},
    {"", "Sign", read_unary},
    {"", "Round", read_unary},
    {"", "IsInf", read_unary},
    {"", "IsNaN", read_unary},

    {"", "Add", read_binary},
    {"", "Mul", read_binary},
    {"", "Max", read_binary},
    {"", "Min", read_binary},
    {"", "Sum", read_binary},
    {"", "Sub", read_binary},
    {"", "Div", read_binary},
    {"", "Pow", read_binary},
    {"", "And", read_binary},
    {"", "Or", read_binary},
    {"", "Xor", read_binary},
    {"", "Equal", read_binary},
    {"", "Greater", read_binary},
    {"", "Less", read_binary},

    {"", "Where", read_where},
    {"", "Cast", read_cast},
    {"", "CastLike", read_cast},
    {"", "Identity", read_identity},
    {"", "Dropout", read_identity},

    {"", "Softmax", read_softmax},
    {"", "ReduceSum", read_reduce},
    {"", "ReduceProd", read_reduce},
    {"", "ReduceMax", read_reduce},
    {"", "ReduceMin", read_reduce},
    {"", "ReduceMean", read_reduce},
    {"", "TopK", read_topk},
    {"", "MatMul", read_matmul},
    {"", "Gemm", read_gemm},
    {"", "Einsum", read_einsum},
    {"", "CumSum", read_cumsum},

    {"", "LRN", read_lrn},
    {"", "BatchNormalization", read_batch_norm},
    {"", "InstanceNormalization", read_instance_norm},
    {"", "GroupNormalization", read_group_norm},
    {"", "LayerNormalization", read_layer_norm},
    {contrib, "LayerNormalization", read_layer_norm},

    {"", "Constant", read_constant},
    {"", "Concat", read_concat},
    {"", "Reshape", read_reshape},
    {"", "Flatten", read_flatten},
    {"", "Transpose", read_transpose},
    {"", "Squeeze", read_squeeze},
    {"", "Unsqueeze", read_unsqueeze},
    {"", "Shape", read_shape},
    {"", "ConstantOfShape", read_constant_of_shape},
    {"", "Range", read_range},
    {"", "RandomNormal", read_random},
    {"", "RandomUniform", read_random},
    {"", "Slice", read_slice},
    {"", "Split", read_split},
    {"", "Pad", read_pad},
    {"", "Expand", read_expand},
    {"", "Tile", read_tile},

    {"", "Gather", read_gather},
    {"", "GatherElements", read_gather_elements},
    {"", "GatherND", read_gather_nd},
    {"", "Scatter", read_scatter},
    {"", "ScatterElements", read_scatter},
    {"", "ScatterND", read_scatter},
    {"", "OneHot", read_one_hot},
    {"", "NonZero", read_non_zero},
    {"", "ReverseSequence", read_reverse_sequence},
    {"", "TensorScatter", read_tensor_scatter},
    {"", "RotaryEmbedding", read_rotary},
    {"", "QuantizeLinear", read_quantize},
    {contrib, "QuantizeLinear", read_quantize},
    {"", "DequantizeLinear", read_dequantize},
    {contrib, "DequantizeLinear", read_dequantize},
};

} // namespace

NodeReading find_reader(std::string_view domain, std::string_view op) {
    using Name = std::pair<std::string_view, std::string_view>;
    static const auto table = [] {
        std::map<Name, NodeReading> m;
        for (const ReaderRow& row : rows) {
            m.emplace(Name(row.domain, row.op), row.read);
        }
        return m;
    }();
    auto it = table.find({domain, op});
    return it == table.end() ? nullptr : it->second;
}

} // namespace ingot::api
