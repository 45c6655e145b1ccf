// SPDX-License-Identifier: Apache-2.0
// Layers that move, make or select data.
#include "layers.h"

namespace ingot::python {

namespace {

void bind_moves(nb::module_& m) {
    auto concat = layer<trt::IConcatenationLayer>(m, "IConcatenationLayer", "Joins tensors.");
    INGOT_PROP(concat, IConcatenationLayer, "axis", Axis, "Default max(0, rank - 3).");
    auto shuffle = layer<trt::IShuffleLayer>(
        m, "IShuffleLayer", "Transposes, reshapes, transposes again. Input 1 may give the shape.");
    INGOT_PROP(shuffle, IShuffleLayer, "first_transpose", FirstTranspose, "A Permutation.");
    INGOT_PROP(shuffle, IShuffleLayer, "reshape_dims", ReshapeDimensions,
               "-1: what is left; 0: that of the input, see zero_is_placeholder.");
    INGOT_PROP(shuffle, IShuffleLayer, "second_transpose", SecondTranspose, "A Permutation.");
    INGOT_PROP(shuffle, IShuffleLayer, "zero_is_placeholder", ZeroIsPlaceholder, "Default True.");
    auto slice = layer<trt::ISliceLayer>(
        m, "ISliceLayer",
        "Every stride-th element from start. Optional inputs: 1 start, 2 size, 3 stride, 4 fill "
        "value, 5 axes.");
    INGOT_PROP(slice, ISliceLayer, "start", Start,
               "First element per dimension; input 1 gives it instead.");
    INGOT_PROP(slice, ISliceLayer, "shape", Size, "Of the output.");
    INGOT_PROP(slice, ISliceLayer, "stride", Stride,
               "Steps per dimension, may be negative; input 3 gives them instead.");
    INGOT_PROP(slice, ISliceLayer, "mode", Mode, "SampleMode. Default STRICT_BOUNDS.");
    INGOT_PROP(slice, ISliceLayer, "axes", Axes,
               "The axes that start, shape and stride are for; default all.");
    layer<trt::IShapeLayer>(m, "IShapeLayer", "The shape of the input as a vector of INT64.");
    layer<trt::ISqueezeLayer>(m, "ISqueezeLayer", "Removes axes of size 1.");
    layer<trt::IUnsqueezeLayer>(m, "IUnsqueezeLayer", "Adds axes of size 1.");
    auto reverse = layer<trt::IReverseSequenceLayer>(m, "IReverseSequenceLayer",
                                                     "Reverses the start of each sequence.");
    INGOT_PROP(reverse, IReverseSequenceLayer, "batch_axis", BatchAxis, "Default 1.");
    INGOT_PROP(reverse, IReverseSequenceLayer, "sequence_axis", SequenceAxis, "Default 0.");
}

void bind_lookups(nb::module_& m) {
    auto gather = layer<trt::IGatherLayer>(m, "IGatherLayer", "Elements or slices at indices.");
    INGOT_PROP(gather, IGatherLayer, "axis", GatherAxis, "For DEFAULT and ELEMENT.");
    INGOT_PROP(gather, IGatherLayer, "num_elementwise_dims", NbElementWiseDims,
               "Leading dimensions that both inputs share: 0 or 1 for DEFAULT, any for ND.");
    INGOT_PROP(gather, IGatherLayer, "mode", Mode, "GatherMode.");
    auto scatter = layer<trt::IScatterLayer>(
        m, "IScatterLayer", "A copy of input 0 with input 2 written at the indices of input 1.");
    INGOT_PROP(scatter, IScatterLayer, "axis", Axis, "For ELEMENT.");
    INGOT_PROP(scatter, IScatterLayer, "mode", Mode, "ScatterMode.");
    auto one_hot = layer<trt::IOneHotLayer>(m, "IOneHotLayer", "Inputs: indices, values, depth.");
    INGOT_PROP(one_hot, IOneHotLayer, "axis", Axis, "Of the output, for the new dimension.");
    auto non_zero = layer<trt::INonZeroLayer>(m, "INonZeroLayer",
                                              "Indices of elements that are not zero: rank x "
                                              "count. The count depends on data.");
    INGOT_PROP(non_zero, INonZeroLayer, "indices_type", IndicesType, "INT32 or INT64.");
    layer<trt::ISelectLayer>(m, "ISelectLayer", "condition ? then : else, broadcast.");
    auto nms = layer<trt::INMSLayer>(
        m, "INMSLayer",
        "Non-maximum suppression. Outputs: count x 3 indices (batch, class, box), count.");
    INGOT_PROP(nms, INMSLayer, "bounding_box_format", BoundingBoxFormat, "Default CORNER_PAIRS.");
    INGOT_PROP(nms, INMSLayer, "topk_box_limit", TopKBoxLimit, "Default 2000.");
    INGOT_PROP(nms, INMSLayer, "indices_type", IndicesType, "INT32 or INT64.");
}

void bind_sources(nb::module_& m) {
    auto constant = layer<trt::IConstantLayer>(m, "IConstantLayer", "Weights as a tensor.");
    INGOT_PROP(constant, IConstantLayer, "weights", Weights, "A numpy array.");
    INGOT_PROP(constant, IConstantLayer, "shape", Dimensions,
               "As many elements as there are weights.");
    layer<trt::IIdentityLayer>(m, "IIdentityLayer", "The input itself.");
    auto cast = layer<trt::ICastLayer>(m, "ICastLayer", "Converts types.");
    INGOT_PROP(cast, ICastLayer, "to_type", ToType, "Type of the result.");
    auto fill = layer<trt::IFillLayer>(
        m, "IFillLayer", "Makes a tensor. Optional inputs: 0 the shape, 1 alpha, 2 beta.");
    INGOT_PROP(fill, IFillLayer, "shape", Dimensions, "Of the result; input 0 gives it instead.");
    INGOT_PROP(fill, IFillLayer, "operation", Operation, "FillOperation.");
    INGOT_PROP(fill, IFillLayer, "to_type", ToType, "Type of the result.");
    fill.def("is_alpha_beta_int64", method<&trt::IFillLayer::isAlphaBetaInt64>(),
             "Whether alpha and beta were last set as integers.")
        .def_prop_rw(
            "alpha",
            [](const trt::IFillLayer& l) -> nb::object {
                return l.isAlphaBetaInt64() ? nb::object(nb::int_(l.getAlphaInt64()))
                                            : nb::object(nb::float_(l.getAlpha()));
            },
            [](trt::IFillLayer& l, const nb::object& v) {
                PyLong_Check(v.ptr()) != 0 ? l.setAlphaInt64(nb::cast<int64_t>(v))
                                           : l.setAlpha(nb::cast<double>(v));
            },
            "Start, lower bound or mean: a float or, for integers, an int.")
        .def_prop_rw(
            "beta",
            [](const trt::IFillLayer& l) -> nb::object {
                return l.isAlphaBetaInt64() ? nb::object(nb::int_(l.getBetaInt64()))
                                            : nb::object(nb::float_(l.getBeta()));
            },
            [](trt::IFillLayer& l, const nb::object& v) {
                PyLong_Check(v.ptr()) != 0 ? l.setBetaInt64(nb::cast<int64_t>(v))
                                           : l.setBeta(nb::cast<double>(v));
            },
            "Step, upper bound or standard deviation.");
    auto assertion =
        layer<trt::IAssertionLayer>(m, "IAssertionLayer", "Fails unless all elements are true.");
    INGOT_PROP(assertion, IAssertionLayer, "message", Message, "Said when it fails.");
}

} // namespace

void bind_data_layers(nb::module_& m) {
    bind_moves(m);
    bind_lookups(m);
    bind_sources(m);
}

} // namespace ingot::python
