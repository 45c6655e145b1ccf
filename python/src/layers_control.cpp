// SPDX-License-Identifier: Apache-2.0
// Loops, conditionals, and the layers of transformers.
#include "layers.h"

namespace ingot::python {

namespace {

void bind_loops(nb::module_& m) {
    nb::class_<trt::ILoop> loop(m, "ILoop", nb::dynamic_attr(),
                                "A loop in a network: at most one limit of each kind, at least "
                                "one. Its body is what lies between its layers.");
    common(loop);
    INGOT_PROP(loop, ILoop, "name", Name, "For messages.");
    auto boundary =
        layer<trt::ILoopBoundaryLayer>(m, "ILoopBoundaryLayer", "A layer at the border of a loop.");
    prop_ro<&trt::ILoopBoundaryLayer::getLoop>(boundary, "loop",
                                               "The loop that the layer belongs to.");
    using Boundary = trt::ILoopBoundaryLayer;
    layer_class<trt::IRecurrenceLayer, Boundary>(
        m, "IRecurrenceLayer",
        "A value that one iteration hands to the next. Inputs: 0 the first value, 1 the next one.");
    auto limit =
        layer_class<trt::ITripLimitLayer, Boundary>(m, "ITripLimitLayer", "When a loop ends.");
    prop_ro<&trt::ITripLimitLayer::getTripLimit>(limit, "kind", "TripLimit.");
    auto iterator = layer_class<trt::IIteratorLayer, Boundary>(
        m, "IIteratorLayer", "Hands iteration i the i-th slice of a tensor.");
    INGOT_PROP(iterator, IIteratorLayer, "axis", Axis,
               "The axis that is cut into slices. Default 0.");
    INGOT_PROP(iterator, IIteratorLayer, "reverse", Reverse, "From the end.");
    auto output = layer_class<trt::ILoopOutputLayer, Boundary>(
        m, "ILoopOutputLayer", "A result of a loop. Input 1: the length of the new axis.");
    INGOT_PROP(output, ILoopOutputLayer, "axis", Axis, "The new axis.");
    prop_ro<&trt::ILoopOutputLayer::getLoopOutput>(output, "kind", "LoopOutput.");
    loop.def("add_recurrence", method<&trt::ILoop::addRecurrence>(), "initial_value"_a,
             "A value that one iteration hands to the next: set the layer's input 1 to what comes "
             "next.")
        .def("add_trip_limit", method<&trt::ILoop::addTripLimit>(), "tensor"_a, "kind"_a,
             "When it ends: after a count, a scalar shape tensor, or when a BOOL scalar of its "
             "body is False. None for a second limit of the kind.")
        .def("add_iterator", method<&trt::ILoop::addIterator>(), "tensor"_a, "axis"_a = 0,
             "reverse"_a = false,
             "Hands iteration i the i-th slice of a tensor along an axis, from the end if reverse.")
        .def("add_loop_output", method<&trt::ILoop::addLoopOutput>(), "tensor"_a, "kind"_a,
             "axis"_a = 0,
             "A result: the last value, or all of them along a new axis, whose length is the "
             "layer's input 1.");
}

void bind_conditionals(nb::module_& m) {
    nb::class_<trt::IIfConditional> conditional(m, "IIfConditional", nb::dynamic_attr(),
                                                "Two branches, of which one runs.");
    common(conditional);
    INGOT_PROP(conditional, IIfConditional, "name", Name, "For messages.");
    auto boundary = layer<trt::IIfConditionalBoundaryLayer>(
        m, "IIfConditionalBoundaryLayer", "A layer at the border of a conditional.");
    prop_ro<&trt::IIfConditionalBoundaryLayer::getConditional>(
        boundary, "conditional", "The conditional that the layer belongs to.");
    using Boundary = trt::IIfConditionalBoundaryLayer;
    layer_class<trt::IConditionLayer, Boundary>(m, "IConditionLayer", "A scalar BOOL.");
    layer_class<trt::IIfConditionalOutputLayer, Boundary>(m, "IIfConditionalOutputLayer",
                                                          "A result of a conditional.");
    layer_class<trt::IIfConditionalInputLayer, Boundary>(m, "IIfConditionalInputLayer",
                                                         "A value that branches use.");
    conditional
        .def("set_condition", method<&trt::IIfConditional::setCondition>(), "condition"_a,
             "The scalar BOOL that chooses. None when there is one already.")
        .def("add_output", method<&trt::IIfConditional::addOutput>(), "true_subgraph_output"_a,
             "false_subgraph_output"_a,
             "A result: of the branch for true, and of that for false, of the same type and rank.")
        .def("add_input", method<&trt::IIfConditional::addInput>(), "input"_a,
             "A value that branches use.");
}

void bind_attention(nb::module_& m) {
    nb::class_<trt::IAttention> attention(
        m, "IAttention", nb::dynamic_attr(),
        "normalisation(Q K^T + mask) V, B H S D. There is no scale: fold it into Q.");
    common(attention);
    INGOT_PROP(attention, IAttention, "name", Name, "For messages and profiles.");
    INGOT_PROP(attention, IAttention, "metadata", Metadata,
               "Text that the engine keeps for EngineInspector.");
    INGOT_PROP(attention, IAttention, "norm_op", NormalizationOperation, "Default SOFTMAX.");
    INGOT_PROP(attention, IAttention, "mask", Mask, "B H S T: BOOL, or a number that is added.");
    INGOT_PROP(attention, IAttention, "causal", Causal,
               "Older form of causal_kind: True stands for UPPER_LEFT.");
    INGOT_PROP(attention, IAttention, "causal_kind", CausalKind, "Default NONE.");
    INGOT_PROP(attention, IAttention, "decomposable", Decomposable,
               "False: one kernel, or the build fails.");
    INGOT_PROP(
        attention, IAttention, "normalization_quantize_scale", NormalizationQuantizeScale,
        "Scale by which the normalised scores are quantised: a scalar or vector; None: none.");
    INGOT_PROP(attention, IAttention, "normalization_quantize_to_type", NormalizationQuantizeToType,
               "FP8 or INT8; FLOAT (the default): not quantised.");
    INGOT_PROP(attention, IAttention, "num_ranks", NbRanks, "GPUs that share the work. Default 1.");
    INGOT_PROP(attention, IAttention, "query_form", QueryForm, "Default PADDED_BHND.");
    INGOT_PROP(attention, IAttention, "key_value_form", KeyValueForm, "Default PADDED_BHND.");
    INGOT_PROP(attention, IAttention, "query_lengths", QueryLengths,
               "For PACKED_NHD: INT32, B + 1, where each sequence starts, from 0 to the number of "
               "tokens.");
    INGOT_PROP(attention, IAttention, "key_value_lengths", KeyValueLengths,
               "As query_lengths; for PADDED_BHND, optional: INT32, B, how many tokens each "
               "sequence has.");
    prop_ro<&trt::IAttention::getNbInputs>(attention, "num_inputs",
                                           "Query, key, value, and those that are set.");
    prop_ro<&trt::IAttention::getNbOutputs>(attention, "num_outputs", "Always 1.");
    attention
        .def("set_input", method<&trt::IAttention::setInput>(), "index"_a, "tensor"_a,
             "0 query, 1 key, 2 value.")
        .def("get_input", method<&trt::IAttention::getInput>(), "index"_a,
             "0 query, 1 key, 2 value. None for a bad index.")
        .def("get_output", method<&trt::IAttention::getOutput>(), "index"_a,
             "The result, of the shape of the query. None for a bad index.");
    auto boundary = layer<trt::IAttentionBoundaryLayer>(
        m, "IAttentionBoundaryLayer",
        "Base of the layers that an IAttention shows among those of its network.");
    prop_ro<&trt::IAttentionBoundaryLayer::getAttention>(
        boundary, "attention", "The IAttention that the layer belongs to.");
    layer_class<trt::IAttentionInputLayer, trt::IAttentionBoundaryLayer>(
        m, "IAttentionInputLayer", "The inputs of an IAttention.");
    layer_class<trt::IAttentionOutputLayer, trt::IAttentionBoundaryLayer>(
        m, "IAttentionOutputLayer", "The output of an IAttention.");
}

void bind_transformer_layers(nb::module_& m) {
    auto rotary = layer<trt::IRotaryEmbeddingLayer>(
        m, "IRotaryEmbeddingLayer", "Rotates pairs of the last dimension by position.");
    INGOT_PROP(rotary, IRotaryEmbeddingLayer, "interleaved", Interleaved,
               "True: pairs are neighbours; False: halves.");
    INGOT_PROP(rotary, IRotaryEmbeddingLayer, "rotary_embedding_dim", RotaryEmbeddingDim,
               "How much of the last dimension is rotated; 0: all.");
    auto cache = layer<trt::IKVCacheUpdateLayer>(m, "IKVCacheUpdateLayer",
                                                 "Writes tokens into a cache in place.");
    INGOT_PROP(cache, IKVCacheUpdateLayer, "cache_mode", CacheMode, "LINEAR.");
    INGOT_PROP(cache, IKVCacheUpdateLayer, "update_form", UpdateForm, "Default PADDED_BHND.");
    INGOT_PROP(cache, IKVCacheUpdateLayer, "update_lengths", UpdateLengths,
               "For PACKED_NHD: INT32, B + 1, where each sequence starts.");
    auto moe = layer<trt::IMoELayer>(m, "IMoELayer", "Mixture of experts.");
    INGOT_PROP(moe, IMoELayer, "activation_type", ActivationType, "Of the gate.");
    INGOT_PROP(moe, IMoELayer, "quantization_to_type", QuantizationToType,
               "Type that goes into `down`: FP8 or FP4; FLOAT (the default): not quantised.");
    INGOT_PROP(moe, IMoELayer, "quantization_block_shape", QuantizationBlockShape,
               "Sizes of the blocks of B, S, K, I that share a scale.");
    INGOT_PROP(moe, IMoELayer, "dyn_q_output_scale_type", DynQOutputScaleType,
               "Type of computed scales: FP8 or E8M0.");
    INGOT_PROP(moe, IMoELayer, "swiglu_param_limit", SwigluParamLimit,
               "Bound of gate and up. Default infinity.");
    INGOT_PROP(moe, IMoELayer, "swiglu_param_alpha", SwigluParamAlpha,
               "Factor inside the sigmoid. Default 1.");
    INGOT_PROP(moe, IMoELayer, "swiglu_param_beta", SwigluParamBeta, "Added to up. Default 0.");
    moe.def("set_gated_weights", method<&trt::IMoELayer::setGatedWeights>(), "fc_gate_weights"_a,
            "fc_up_weights"_a, "fc_down_weights"_a, "activation_type"_a,
            "Gate and up: experts x C x I; down: experts x I x C.")
        .def("set_gated_biases", method<&trt::IMoELayer::setGatedBiases>(), "fc_gate_biases"_a,
             "fc_up_biases"_a, "fc_down_biases"_a,
             "Gate and up: experts x I; down: experts x C. All or none.")
        .def("set_quantization_static", method<&trt::IMoELayer::setQuantizationStatic>(),
             "fc_down_activation_scale"_a, "data_type"_a,
             "Quantises what goes into `down` by a given scale.")
        .def("set_quantization_dynamic_dbl_q",
             method<&trt::IMoELayer::setQuantizationDynamicDblQ>(),
             "fc_down_activation_dbl_q_scale"_a, "data_type"_a, "block_shape"_a,
             "dyn_q_output_scale_type"_a,
             "Quantises it by computed block scales, which are quantised too.")
        .def("set_swiglu_params", method<&trt::IMoELayer::setSwigluParams>(), "limit"_a, "alpha"_a,
             "beta"_a, "min(g, limit) * sigmoid(alpha g) * (clamp(u, -limit, limit) + beta).");
    layer<trt::IDistCollectiveLayer>(m, "IDistCollectiveLayer", "Exchanges data between GPUs.");
}

} // namespace

void bind_control_layers(nb::module_& m) {
    bind_loops(m);
    bind_conditionals(m);
    bind_attention(m);
    bind_transformer_layers(m);
}

} // namespace ingot::python
