// SPDX-License-Identifier: Apache-2.0
// ITensor and ILayer; which Python class a layer shows as.
#include "layers.h"

namespace {

using nvinfer1::LayerType;

template <class T>
const std::type_info* info() {
    return &typeid(T);
}

struct LayerClass {
    LayerType type;
    const std::type_info* info;
};

#define INGOT_LAYER(type, T)                                                                       \
    { LayerType::k##type, info<nvinfer1::T>() }

// Without activations and pooling: their `type` is another one than that of layers, which programs
// ask for. Like all layers in TensorRT's package they show as ILayer, until `__class__` is
// assigned.
const LayerClass layer_classes[] = {
    INGOT_LAYER(CONVOLUTION, IConvolutionLayer),
    INGOT_LAYER(CAST, ICastLayer),
    INGOT_LAYER(LRN, ILRNLayer),
    INGOT_LAYER(SCALE, IScaleLayer),
    INGOT_LAYER(SOFTMAX, ISoftMaxLayer),
    INGOT_LAYER(DECONVOLUTION, IDeconvolutionLayer),
    INGOT_LAYER(CONCATENATION, IConcatenationLayer),
    INGOT_LAYER(ELEMENTWISE, IElementWiseLayer),
    INGOT_LAYER(UNARY, IUnaryLayer),
    INGOT_LAYER(PADDING, IPaddingLayer),
    INGOT_LAYER(SHUFFLE, IShuffleLayer),
    INGOT_LAYER(REDUCE, IReduceLayer),
    INGOT_LAYER(TOPK, ITopKLayer),
    INGOT_LAYER(GATHER, IGatherLayer),
    INGOT_LAYER(MATRIX_MULTIPLY, IMatrixMultiplyLayer),
    INGOT_LAYER(RAGGED_SOFTMAX, IRaggedSoftMaxLayer),
    INGOT_LAYER(CONSTANT, IConstantLayer),
    INGOT_LAYER(IDENTITY, IIdentityLayer),
    INGOT_LAYER(PLUGIN_V2, IPluginV2Layer),
    INGOT_LAYER(SLICE, ISliceLayer),
    INGOT_LAYER(SHAPE, IShapeLayer),
    INGOT_LAYER(PARAMETRIC_RELU, IParametricReLULayer),
    INGOT_LAYER(RESIZE, IResizeLayer),
    INGOT_LAYER(TRIP_LIMIT, ITripLimitLayer),
    INGOT_LAYER(RECURRENCE, IRecurrenceLayer),
    INGOT_LAYER(ITERATOR, IIteratorLayer),
    INGOT_LAYER(LOOP_OUTPUT, ILoopOutputLayer),
    INGOT_LAYER(SELECT, ISelectLayer),
    INGOT_LAYER(FILL, IFillLayer),
    INGOT_LAYER(QUANTIZE, IQuantizeLayer),
    INGOT_LAYER(DEQUANTIZE, IDequantizeLayer),
    INGOT_LAYER(CONDITION, IConditionLayer),
    INGOT_LAYER(CONDITIONAL_INPUT, IIfConditionalInputLayer),
    INGOT_LAYER(CONDITIONAL_OUTPUT, IIfConditionalOutputLayer),
    INGOT_LAYER(SCATTER, IScatterLayer),
    INGOT_LAYER(EINSUM, IEinsumLayer),
    INGOT_LAYER(ASSERTION, IAssertionLayer),
    INGOT_LAYER(ONE_HOT, IOneHotLayer),
    INGOT_LAYER(NON_ZERO, INonZeroLayer),
    INGOT_LAYER(GRID_SAMPLE, IGridSampleLayer),
    INGOT_LAYER(NMS, INMSLayer),
    INGOT_LAYER(REVERSE_SEQUENCE, IReverseSequenceLayer),
    INGOT_LAYER(NORMALIZATION, INormalizationLayer),
    INGOT_LAYER(PLUGIN_V3, IPluginV3Layer),
    INGOT_LAYER(SQUEEZE, ISqueezeLayer),
    INGOT_LAYER(UNSQUEEZE, IUnsqueezeLayer),
    INGOT_LAYER(CUMULATIVE, ICumulativeLayer),
    INGOT_LAYER(DYNAMIC_QUANTIZE, IDynamicQuantizeLayer),
    INGOT_LAYER(ATTENTION_INPUT, IAttentionInputLayer),
    INGOT_LAYER(ATTENTION_OUTPUT, IAttentionOutputLayer),
    INGOT_LAYER(ROTARY_EMBEDDING, IRotaryEmbeddingLayer),
    INGOT_LAYER(KVCACHE_UPDATE, IKVCacheUpdateLayer),
    INGOT_LAYER(MOE, IMoELayer),
    INGOT_LAYER(DIST_COLLECTIVE, IDistCollectiveLayer),
};

} // namespace

const std::type_info*
nanobind::detail::type_hook<nvinfer1::ILayer>::get(const nvinfer1::ILayer* layer) {
    if (layer != nullptr) {
        const LayerType type = layer->getType();
        for (const LayerClass& known : layer_classes) {
            if (known.type == type) {
                return known.info;
            }
        }
    }
    return &typeid(nvinfer1::ILayer);
}

namespace ingot::python {

namespace {

void bind_tensor(nb::module_& m) {
    nb::class_<trt::ITensor> tensor(m, "ITensor", nb::dynamic_attr(),
                                    "A value in a network: an input, or the output of a layer.");
    common(tensor);
    INGOT_PROP(tensor, ITensor, "name", Name, "Unique among inputs and outputs of the engine.");
    INGOT_PROP(tensor, ITensor, "shape", Dimensions,
               "-1 for sizes known only at run time. Can be set for network inputs.");
    INGOT_PROP(tensor, ITensor, "dtype", Type, "DataType of the elements.");
    INGOT_PROP(tensor, ITensor, "location", Location, "Where an input or output lies.");
    INGOT_PROP(tensor, ITensor, "broadcast_across_batch", BroadcastAcrossBatch, "Always False.");
    INGOT_PROP(tensor, ITensor, "allowed_formats", AllowedFormats,
               "Bits of TensorFormat that an input or output may have in memory; LINEAR is taken "
               "where it is among them.");
    prop_ro<&trt::ITensor::isNetworkInput>(tensor, "is_network_input",
                                           "Whether add_input() made it.");
    prop_ro<&trt::ITensor::isNetworkOutput>(tensor, "is_network_output",
                                            "Whether mark_output() was called for it.");
    prop_ro<&trt::ITensor::isShapeTensor>(tensor, "is_shape_tensor",
                                          "Whether its values are used as shapes.");
    prop_ro<&trt::ITensor::isExecutionTensor>(tensor, "is_execution_tensor",
                                              "Whether its values are used in other ways.");
    tensor
        .def_prop_rw(
            "dynamic_range",
            [](const trt::ITensor& t) -> std::optional<std::pair<float, float>> {
                if (!t.dynamicRangeIsSet()) {
                    return std::nullopt;
                }
                return std::pair(t.getDynamicRangeMin(), t.getDynamicRangeMax());
            },
            [](trt::ITensor& t, std::optional<std::pair<float, float>> range) {
                if (!range) {
                    t.resetDynamicRange();
                } else if (!t.setDynamicRange(range->first, range->second)) {
                    throw nb::value_error("dynamic_range: min must not be greater than max");
                }
            },
            nb::for_setter(nb::arg("range").none()),
            "(min, max) for INT8 without calibration, or None.")
        .def("set_dynamic_range", &trt::ITensor::setDynamicRange, "min"_a, "max"_a,
             "Older form of quantisation: the range of values, with which INT8 may be computed. "
             "Errors: ValueError.")
        .def("reset_dynamic_range", &trt::ITensor::resetDynamicRange,
             "Takes set_dynamic_range() back.")
        .def(
            "set_dimension_name",
            [](trt::ITensor& self, int32_t index, const std::optional<std::string>& name) {
                self.setDimensionName(index, name ? name->c_str() : nullptr);
            },
            "index"_a, "name"_a.none(),
            "Names a size of a network input: sizes of the same name are equal at run time.")
        .def("get_dimension_name", &trt::ITensor::getDimensionName, "index"_a,
             "None when it has none.");
}

} // namespace

void bind_tensors(nb::module_& m) {
    bind_tensor(m);
    nb::class_<trt::ILayer> layer(m, "ILayer", nb::dynamic_attr(), "An operation in a network.");
    common(layer);
    INGOT_PROP(layer, ILayer, "name", Name, "For messages, profiles and the inspector.");
    INGOT_PROP(layer, ILayer, "metadata", Metadata, "Text that the inspector shows.");
    INGOT_PROP(layer, ILayer, "num_ranks", NbRanks, "How many GPUs take part in the layer.");
    INGOT_PROP(layer, ILayer, "precision", Precision, "The type that it computes in.");
    prop_ro<&trt::ILayer::getType>(layer, "type", "LayerType.");
    prop_ro<&trt::ILayer::getNbInputs>(layer, "num_inputs", "Inputs; some may be None.");
    prop_ro<&trt::ILayer::getNbOutputs>(layer, "num_outputs", "Results.");
    prop_ro<&trt::ILayer::precisionIsSet>(layer, "precision_is_set", "Whether precision was set.");
    layer
        .def("get_input", method<&trt::ILayer::getInput>(), "index"_a,
             "None for a bad index, or an optional input that is not set.")
        .def("get_output", method<&trt::ILayer::getOutput>(), "index"_a, "None for a bad index.")
        .def("set_input", method<&trt::ILayer::setInput>(), "index"_a, "tensor"_a,
             "Replaces an input, or adds an optional one.")
        .def("get_output_type", method<&trt::ILayer::getOutputType>(), "index"_a,
             "Type of a result.")
        .def("set_output_type", method<&trt::ILayer::setOutputType>(), "index"_a, "dtype"_a,
             "Older form of a cast: the type that a result is converted to.")
        .def("output_type_is_set", method<&trt::ILayer::outputTypeIsSet>(), "index"_a,
             "Whether set_output_type() was called for the result.")
        .def("reset_output_type", method<&trt::ILayer::resetOutputType>(), "index"_a,
             "Takes set_output_type() back.")
        .def("reset_precision", method<&trt::ILayer::resetPrecision>(), "Takes precision back.");
}

} // namespace ingot::python
