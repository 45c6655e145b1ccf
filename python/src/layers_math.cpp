// SPDX-License-Identifier: Apache-2.0
// Layers that compute: pointwise, reductions, products, quantisation.
#include "layers.h"

namespace ingot::python {

namespace {

void bind_pointwise(nb::module_& m) {
    auto activation = layer<trt::IActivationLayer>(m, "IActivationLayer",
                                                   "A function of one value, by ActivationType.");
    INGOT_PROP(activation, IActivationLayer, "type", ActivationType, "ActivationType.");
    INGOT_PROP(activation, IActivationLayer, "alpha", Alpha, "Default 0.");
    INGOT_PROP(activation, IActivationLayer, "beta", Beta, "Default 0.");
    layer<trt::IParametricReLULayer>(m, "IParametricReLULayer",
                                     "x >= 0 ? x : slope x. Inputs: tensor, slope.");
    auto elementwise = layer<trt::IElementWiseLayer>(
        m, "IElementWiseLayer", "A function of two tensors of one type, broadcast.");
    INGOT_PROP(elementwise, IElementWiseLayer, "op", Operation, "The function.");
    auto unary = layer<trt::IUnaryLayer>(m, "IUnaryLayer", "A function of one value.");
    INGOT_PROP(unary, IUnaryLayer, "op", Operation, "The function.");
}

void bind_reductions(nb::module_& m) {
    auto softmax = layer<trt::ISoftMaxLayer>(m, "ISoftMaxLayer",
                                             "Exponentials divided by their sum along an axis.");
    INGOT_PROP(softmax, ISoftMaxLayer, "axes", Axes, "One bit. Default: max(0, rank - 3).");
    layer<trt::IRaggedSoftMaxLayer>(
        m, "IRaggedSoftMaxLayer",
        "Softmax over the first bounds[...] elements. Inputs: tensor Z x S, bounds Z x 1.");
    auto reduce = layer<trt::IReduceLayer>(m, "IReduceLayer", "Reduces axes.");
    INGOT_PROP(reduce, IReduceLayer, "op", Operation, "The function.");
    INGOT_PROP(reduce, IReduceLayer, "axes", ReduceAxes, "Bits of the axes.");
    INGOT_PROP(reduce, IReduceLayer, "keep_dims", KeepDimensions,
               "Whether reduced axes stay with size 1.");
    auto topk = layer<trt::ITopKLayer>(m, "ITopKLayer",
                                       "The k largest or smallest along an axis, sorted. Outputs: "
                                       "values, indices. Input 1, a scalar, may give k.");
    INGOT_PROP(topk, ITopKLayer, "op", Operation, "The function.");
    INGOT_PROP(topk, ITopKLayer, "k", K, "-1 when input 1 gives it.");
    INGOT_PROP(topk, ITopKLayer, "axes", ReduceAxes, "One bit.");
    INGOT_PROP(topk, ITopKLayer, "indices_type", IndicesType, "INT32 or INT64.");
    auto cumulative =
        layer<trt::ICumulativeLayer>(m, "ICumulativeLayer", "Running sums along an axis.");
    INGOT_PROP(cumulative, ICumulativeLayer, "op", Operation, "The function.");
    INGOT_PROP(cumulative, ICumulativeLayer, "exclusive", Exclusive,
               "Leave the element itself out.");
    INGOT_PROP(cumulative, ICumulativeLayer, "reverse", Reverse, "From the end.");
}

void bind_products(nb::module_& m) {
    layer<trt::IMatrixMultiplyLayer>(m, "IMatrixMultiplyLayer",
                                     "Products of the last two dimensions; others are broadcast.")
        .def_prop_rw(
            "op0", [](const trt::IMatrixMultiplyLayer& l) { return l.getOperation(0); },
            [](trt::IMatrixMultiplyLayer& l, trt::MatrixOperation op) { l.setOperation(0, op); },
            "MatrixOperation of input 0.")
        .def_prop_rw(
            "op1", [](const trt::IMatrixMultiplyLayer& l) { return l.getOperation(1); },
            [](trt::IMatrixMultiplyLayer& l, trt::MatrixOperation op) { l.setOperation(1, op); },
            "MatrixOperation of input 1.");
    auto einsum = layer<trt::IEinsumLayer>(m, "IEinsumLayer",
                                           "Sums of products by an equation such as ij,jk->ik.");
    INGOT_PROP(einsum, IEinsumLayer, "equation", Equation,
               "Such as \"ij,jk->ik\". Errors: the setting stays when it is malformed.");
}

void bind_quantization(nb::module_& m) {
    auto quantize = layer<trt::IQuantizeLayer>(
        m, "IQuantizeLayer",
        "round_half_even(x / scale), clamped to the type. Inputs: tensor, "
        "scale; 2, optional, a zero point, which is all 0.");
    INGOT_PROP(quantize, IQuantizeLayer, "axis", Axis, "Of scales that are a vector; -1: none.");
    INGOT_PROP(quantize, IQuantizeLayer, "to_type", ToType, "Type of the result.");
    INGOT_PROP(quantize, IQuantizeLayer, "block_shape", BlockShape,
               "Sizes of the blocks that share a scale; () when there are none.");
    auto dequantize = layer<trt::IDequantizeLayer>(m, "IDequantizeLayer", "x * scale.");
    INGOT_PROP(dequantize, IDequantizeLayer, "axis", Axis, "Of scales that are a vector.");
    INGOT_PROP(dequantize, IDequantizeLayer, "to_type", ToType, "Type of the result.");
    INGOT_PROP(dequantize, IDequantizeLayer, "block_shape", BlockShape,
               "Sizes of the blocks that share a scale; () when there are none.");
    auto dynamic = layer<trt::IDynamicQuantizeLayer>(
        m, "IDynamicQuantizeLayer",
        "Quantises blocks by scales that it computes. Outputs: quantised, scales.");
    INGOT_PROP(dynamic, IDynamicQuantizeLayer, "axis", Axis,
               "Older form of block_shape: the axis of the blocks.");
    INGOT_PROP(dynamic, IDynamicQuantizeLayer, "block_size", BlockSize,
               "Older form of block_shape: their size along the axis.");
    INGOT_PROP(
        dynamic, IDynamicQuantizeLayer, "block_shape", BlockShape,
        "Sizes of the blocks that share a scale, one per dimension; -1: the whole dimension.");
    INGOT_PROP(dynamic, IDynamicQuantizeLayer, "to_type", ToType, "FP4 or FP8.");
    INGOT_PROP(dynamic, IDynamicQuantizeLayer, "scale_type", ScaleType, "FP8 or E8M0.");
}

} // namespace

void bind_math_layers(nb::module_& m) {
    bind_pointwise(m);
    bind_reductions(m);
    bind_products(m);
    bind_quantization(m);
}

} // namespace ingot::python
