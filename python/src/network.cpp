// SPDX-License-Identifier: Apache-2.0
// INetworkDefinition.
#include "bind.h"

namespace ingot::python {

namespace {

using Network = trt::INetworkDefinition;
using Self = nb::pointer_and_handle<Network>;
using Tensors = std::vector<trt::ITensor*>;

template <class T>
Part<T> part(T* made, const Self& self) {
    return {made, nb::borrow(self.h)};
}

int32_t count_of(const Tensors& tensors) {
    return static_cast<int32_t>(tensors.size());
}

void bind_frame(nb::class_<Network>& c) {
    common(c);
    prop<&Network::getName, &Network::setName>(c, "name", "Name of the network and of its engine.");
    prop_held<&Network::getErrorRecorder, &Network::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger.");
    prop_ro<&Network::getNbLayers>(c, "num_layers", nullptr);
    prop_ro<&Network::getNbInputs>(c, "num_inputs", nullptr);
    prop_ro<&Network::getNbOutputs>(c, "num_outputs", nullptr);
    prop_ro<&Network::getFlags>(c, "flags", "Bits of NetworkDefinitionCreationFlag.");
    c.def_prop_ro("has_implicit_batch_dimension", [](const Network&) { return false; })
        .def("__len__", &Network::getNbLayers)
        .def("__getitem__",
             [](const Self& self, int32_t index) {
                 const int32_t count = self.p->getNbLayers();
                 const int32_t at = index < 0 ? index + count : index;
                 if (at < 0 || at >= count) {
                     throw nb::index_error("layer index out of range");
                 }
                 return part(self.p->getLayer(at), self);
             })
        .def("get_flag", method<&Network::getFlag>(), "flag"_a)
        .def("get_layer", method<&Network::getLayer>(), "index"_a, "None for a bad index.")
        .def("get_input", method<&Network::getInput>(), "index"_a, "None for a bad index.")
        .def("get_output", method<&Network::getOutput>(), "index"_a, "None for a bad index.")
        .def("add_input", method<&Network::addInput>(), "name"_a, "dtype"_a, "shape"_a,
             "An input; -1 for sizes known only at run time, which need an optimisation profile. "
             "None when the name is taken.")
        .def("mark_output", method<&Network::markOutput>(), "tensor"_a)
        .def("unmark_output", method<&Network::unmarkOutput>(), "tensor"_a)
        .def("mark_output_for_shapes", method<&Network::markOutputForShapes>(), "tensor"_a)
        .def("unmark_output_for_shapes", method<&Network::unmarkOutputForShapes>(), "tensor"_a)
        .def("remove_tensor", method<&Network::removeTensor>(), "tensor"_a)
        .def("mark_debug", method<&Network::markDebug>(), "tensor"_a)
        .def("unmark_debug", method<&Network::unmarkDebug>(), "tensor"_a)
        .def("is_debug_tensor", method<&Network::isDebugTensor>(), "tensor"_a)
        .def("mark_unfused_tensors_as_debug_tensors",
             method<&Network::markUnfusedTensorsAsDebugTensors>())
        .def("unmark_unfused_tensors_as_debug_tensors",
             method<&Network::unmarkUnfusedTensorsAsDebugTensors>())
        .def("set_weights_name", method<&Network::setWeightsName>(), "weights"_a, "name"_a,
             "Names weights for refitting.")
        .def("mark_weights_refittable", method<&Network::markWeightsRefittable>(), "name"_a)
        .def("unmark_weights_refittable", method<&Network::unmarkWeightsRefittable>(), "name"_a)
        .def("are_weights_marked_refittable", method<&Network::areWeightsMarkedRefittable>(),
             "name"_a);
}

void bind_math(nb::class_<Network>& c) {
    c.def("add_activation", method<&Network::addActivation>(), "input"_a, "type"_a)
        .def("add_parametric_relu", method<&Network::addParametricReLU>(), "input"_a, "slopes"_a)
        .def("add_elementwise", method<&Network::addElementWise>(), "input1"_a, "input2"_a, "op"_a)
        .def("add_unary", method<&Network::addUnary>(), "input"_a, "op"_a)
        .def("add_softmax", method<&Network::addSoftMax>(), "input"_a)
        .def("add_ragged_softmax", method<&Network::addRaggedSoftMax>(), "input"_a, "bounds"_a)
        .def("add_reduce", method<&Network::addReduce>(), "input"_a, "op"_a, "axes"_a,
             "keep_dims"_a, "axes: bit i is dimension i.")
        .def(
            "add_topk",
            [](const Self& self, trt::ITensor& input, trt::TopKOperation op, int32_t k,
               uint32_t axes, trt::DataType type) {
                return part(self.p->addTopK(input, op, k, axes, type), self);
            },
            "input"_a, "op"_a, "k"_a, "axes"_a, "indices_type"_a = trt::DataType::kINT32)
        .def("add_cumulative", method<&Network::addCumulative>(), "input"_a, "axis"_a, "op"_a,
             "exclusive"_a, "reverse"_a)
        .def("add_matrix_multiply", method<&Network::addMatrixMultiply>(), "input0"_a, "op0"_a,
             "input1"_a, "op1"_a)
        .def(
            "add_einsum",
            [](const Self& self, const Tensors& inputs, const char* equation) {
                return part(self.p->addEinsum(inputs.data(), count_of(inputs), equation), self);
            },
            "inputs"_a, "equation"_a)
        .def(
            "add_quantize",
            [](const Self& self, trt::ITensor& input, trt::ITensor& scale, trt::DataType type) {
                return part(self.p->addQuantize(input, scale, type), self);
            },
            "input"_a, "scale"_a, "output_type"_a = trt::DataType::kINT8)
        .def(
            "add_dequantize",
            [](const Self& self, trt::ITensor& input, trt::ITensor& scale, trt::DataType type) {
                return part(self.p->addDequantize(input, scale, type), self);
            },
            "input"_a, "scale"_a, "output_type"_a = trt::DataType::kFLOAT)
        .def("add_dynamic_quantize", method<&Network::addDynamicQuantize>(), "input"_a, "axis"_a,
             "block_size"_a, "output_type"_a, "scale_type"_a)
        .def("add_dynamic_quantize_v2", method<&Network::addDynamicQuantizeV2>(), "input"_a,
             "block_shape"_a, "output_type"_a, "scale_type"_a);
}

void bind_windows(nb::class_<Network>& c) {
    c.def("add_convolution_nd", method<&Network::addConvolutionNd>(), "input"_a,
          "num_output_maps"_a, "kernel_shape"_a, "kernel"_a.none(), "bias"_a.none() = nb::none(),
          "Kernel of two or three sizes; weights that are None are given as inputs 1 and 2.")
        .def("add_deconvolution_nd", method<&Network::addDeconvolutionNd>(), "input"_a,
             "num_output_maps"_a, "kernel_shape"_a, "kernel"_a.none(), "bias"_a.none() = nb::none())
        .def("add_pooling_nd", method<&Network::addPoolingNd>(), "input"_a, "type"_a,
             "window_size"_a)
        .def("add_lrn", method<&Network::addLRN>(), "input"_a, "window"_a, "alpha"_a, "beta"_a,
             "k"_a)
        .def("add_scale", method<&Network::addScale>(), "input"_a, "mode"_a,
             "shift"_a.none() = nb::none(), "scale"_a.none() = nb::none(),
             "power"_a.none() = nb::none())
        .def("add_scale_nd", method<&Network::addScaleNd>(), "input"_a, "mode"_a,
             "shift"_a.none() = nb::none(), "scale"_a.none() = nb::none(),
             "power"_a.none() = nb::none(), "channel_axis"_a = 0)
        .def("add_padding_nd", method<&Network::addPaddingNd>(), "input"_a, "pre_padding"_a,
             "post_padding"_a)
        .def("add_resize", method<&Network::addResize>(), "input"_a)
        .def("add_grid_sample", method<&Network::addGridSample>(), "input"_a, "grid"_a)
        .def("add_normalization", method<&Network::addNormalization>(), "input"_a, "scale"_a,
             "bias"_a, "axesMask"_a)
        .def("add_normalization_v2", method<&Network::addNormalizationV2>(), "input"_a, "scale"_a,
             "bias"_a, "axesMask"_a);
}

void bind_data(nb::class_<Network>& c) {
    c.def(
         "add_concatenation",
         [](const Self& self, const Tensors& inputs) {
             return part(self.p->addConcatenation(inputs.data(), count_of(inputs)), self);
         },
         "inputs"_a)
        .def("add_shuffle", method<&Network::addShuffle>(), "input"_a)
        .def("add_slice", method<&Network::addSlice>(), "input"_a, "start"_a, "shape"_a, "stride"_a)
        .def("add_shape", method<&Network::addShape>(), "input"_a)
        .def("add_gather", method<&Network::addGather>(), "input"_a, "indices"_a, "axis"_a)
        .def("add_gather_v2", method<&Network::addGatherV2>(), "input"_a, "indices"_a, "mode"_a)
        .def("add_scatter", method<&Network::addScatter>(), "data"_a, "indices"_a, "updates"_a,
             "mode"_a)
        .def("add_one_hot", method<&Network::addOneHot>(), "indices"_a, "values"_a, "depth"_a,
             "axis"_a)
        .def(
            "add_non_zero",
            [](const Self& self, trt::ITensor& input, trt::DataType type) {
                return part(self.p->addNonZero(input, type), self);
            },
            "input"_a, "indices_type"_a = trt::DataType::kINT32)
        .def("add_select", method<&Network::addSelect>(), "condition"_a, "then_input"_a,
             "else_input"_a)
        .def("add_constant", method<&Network::addConstant>(), "shape"_a, "weights"_a,
             "A numpy array is kept and not copied if it is contiguous.")
        .def("add_identity", method<&Network::addIdentity>(), "input"_a)
        .def("add_cast", method<&Network::addCast>(), "input"_a, "to_type"_a)
        .def(
            "add_fill",
            [](const Self& self, const DimsArg& shape, trt::FillOperation op, trt::DataType type) {
                return part(self.p->addFill(shape.value, op, type), self);
            },
            "shape"_a, "op"_a, "output_type"_a = trt::DataType::kFLOAT)
        .def("add_squeeze", method<&Network::addSqueeze>(), "input"_a, "axes"_a)
        .def("add_unsqueeze", method<&Network::addUnsqueeze>(), "input"_a, "axes"_a)
        .def(
            "add_nms",
            [](const Self& self, trt::ITensor& boxes, trt::ITensor& scores, trt::ITensor& most,
               trt::DataType type) {
                return part(self.p->addNMS(boxes, scores, most, type), self);
            },
            "boxes"_a, "scores"_a, "max_output_boxes_per_class"_a,
            "indices_type"_a = trt::DataType::kINT32)
        .def("add_reverse_sequence", method<&Network::addReverseSequence>(), "input"_a,
             "sequence_lens"_a)
        .def("add_assertion", method<&Network::addAssertion>(), "condition"_a, "message"_a);
}

void bind_transformers(nb::class_<Network>& c) {
    c.def("add_loop", method<&Network::addLoop>())
        .def("add_if_conditional", method<&Network::addIfConditional>())
        .def("add_attention", method<&Network::addAttention>(), "query"_a, "key"_a, "value"_a,
             "norm_op"_a, "causal"_a)
        .def("add_attention_v2", method<&Network::addAttentionV2>(), "query"_a, "key"_a, "value"_a,
             "norm_op"_a, "causal_kind"_a)
        .def("add_rotary_embedding", method<&Network::addRotaryEmbedding>(), "input"_a,
             "cos_cache"_a, "sin_cache"_a, "interleaved"_a, "rotary_embedding_dim"_a)
        .def("add_kv_cache_update", method<&Network::addKVCacheUpdate>(), "cache"_a, "update"_a,
             "write_indices"_a, "cache_mode"_a)
        .def("add_moe", method<&Network::addMoE>(), "hidden_states"_a,
             "selected_experts_for_tokens"_a, "scores_for_selected_experts"_a)
        .def(
            "add_dist_collective",
            [](const Self& self, trt::ITensor& input, trt::CollectiveOperation op,
               trt::ReduceOperation reduce, int64_t root, std::vector<int64_t> groups) {
                return part(self.p->addDistCollective(input, op, reduce, root,
                                                      groups.empty() ? nullptr : groups.data(),
                                                      static_cast<int64_t>(groups.size())),
                            self);
            },
            "input"_a, "dist_collective_op"_a, "reduce_op"_a, "root"_a,
            "groups"_a = std::vector<int64_t>{});
}

/// Strings of a kernel in CUDA; what they point to lives during the call.
Part<trt::ILayer> add_cuda_source(const Self& self, const Tensors& inputs, const char* name,
                                  const char* source, const char* kernel, const char* signature,
                                  const char* grid, const char* block, const char* arguments,
                                  const char* shared_bytes) {
    const ingot::CudaSource text{name,      source, kernel, signature,
                                 arguments, grid,   block,  shared_bytes};
    return part(ingot::addCudaSourceLayer(*self.p, inputs.data(), count_of(inputs), text), self);
}

} // namespace

void bind_network(nb::module_& m) {
    nb::class_<Network> c(
        m, "INetworkDefinition", nb::is_weak_referenceable(),
        "A network, made layer by layer or by OnnxParser. Methods add_... return None when tensors "
        "do not fit; the error goes to the recorder or the logger. One thread at a time.");
    bind_frame(c);
    bind_math(c);
    bind_windows(c);
    bind_data(c);
    bind_transformers(c);
    c.def("add_cuda_source_layer", &add_cuda_source, "inputs"_a, "name"_a, "source"_a, "kernel"_a,
          "signature"_a, "grid"_a, "block"_a, "arguments"_a.none() = nb::none(),
          "shared_bytes"_a.none() = nb::none(),
          "Beyond TensorRT: a layer that runs a kernel given as CUDA C++ text; see ingot.h.");
}

} // namespace ingot::python
