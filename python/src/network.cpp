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

Part<trt::ISqueezeLayer> add_squeeze(const Self& self, trt::ITensor& input, trt::ITensor* axes) {
    if (axes == nullptr) {
        const trt::Dims dims = input.getDimensions();
        nb::list ones;
        for (int32_t i = 0; i < dims.nbDims; ++i) {
            if (dims.d[i] == 1) {
                ones.append(i);
            }
        }
        const PyWeights weights =
            weights_of(nb::module_::import_("numpy").attr("array")(ones, "int64"));
        network_keeps(self.h, weights.owner);
        trt::IConstantLayer* const constant =
            self.p->addConstant(trt::Dims{1, {weights.value.count}}, weights.value);
        axes = constant == nullptr ? nullptr : constant->getOutput(0);
    }
    return part(axes == nullptr ? nullptr : self.p->addSqueeze(input, *axes), self);
}

void bind_frame(nb::class_<Network>& c) {
    common(c);
    prop<&Network::getName, &Network::setName>(c, "name", "Name of the network and of its engine.");
    prop_held<&Network::getErrorRecorder, &Network::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger.");
    prop_ro<&Network::getNbLayers>(c, "num_layers", "Layers so far; `network[i]` gives each.");
    prop_ro<&Network::getNbInputs>(c, "num_inputs", "Inputs so far.");
    prop_ro<&Network::getNbOutputs>(c, "num_outputs", "Tensors marked as outputs so far.");
    prop_ro<&Network::getFlags>(c, "flags", "Bits of NetworkDefinitionCreationFlag.");
    c.def_prop_ro("builder", &Network::getBuilder, nb::rv_policy::reference,
                  "The Builder that made it.");
    c.def_prop_ro(
         "has_implicit_batch_dimension", [](const Network&) { return false; }, "Always False.")
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
        .def("get_flag", method<&Network::getFlag>(), "flag"_a,
             "Whether a NetworkDefinitionCreationFlag was given to create_network().")
        .def("get_layer", method<&Network::getLayer>(), "index"_a, "None for a bad index.")
        .def("get_input", method<&Network::getInput>(), "index"_a, "None for a bad index.")
        .def("get_output", method<&Network::getOutput>(), "index"_a, "None for a bad index.")
        .def("add_input", method<&Network::addInput>(), "name"_a, "dtype"_a, "shape"_a,
             "An input; -1 for sizes known only at run time, which need an optimisation profile. "
             "None when the name is taken.");
}

void bind_marks(nb::class_<Network>& c) {
    c.def("mark_output", method<&Network::markOutput>(), "tensor"_a,
          "Makes a tensor an output of the network. Outputs are in the order of marking.")
        .def("unmark_output", method<&Network::unmarkOutput>(), "tensor"_a,
             "Takes mark_output() back.")
        .def("mark_output_for_shapes", method<&Network::markOutputForShapes>(), "tensor"_a,
             "Makes a shape tensor an output whose values infer_shapes() finds. False when it is "
             "none.")
        .def("unmark_output_for_shapes", method<&Network::unmarkOutputForShapes>(), "tensor"_a,
             "Takes mark_output_for_shapes() back. False when it was not marked.")
        .def("remove_tensor", method<&Network::removeTensor>(), "tensor"_a,
             "Removes an input that nothing uses, or a tensor from the outputs.")
        .def("mark_debug", method<&Network::markDebug>(), "tensor"_a,
             "Lets contexts show the tensor to an IDebugListener: every run computes and stores "
             "it. False when it is marked already or of another network.")
        .def("unmark_debug", method<&Network::unmarkDebug>(), "tensor"_a,
             "Takes mark_debug() back. False when it was not marked.")
        .def("is_debug_tensor", method<&Network::isDebugTensor>(), "tensor"_a,
             "Whether mark_debug() was called for it.")
        .def("mark_unfused_tensors_as_debug_tensors",
             method<&Network::markUnfusedTensorsAsDebugTensors>(),
             "Lets contexts show tensors that fusion leaves to an IDebugListener, without "
             "hindering fusion.")
        .def("unmark_unfused_tensors_as_debug_tensors",
             method<&Network::unmarkUnfusedTensorsAsDebugTensors>(),
             "Takes mark_unfused_tensors_as_debug_tensors() back.")
        .def("set_weights_name", method<&Network::setWeightsName>(), "weights"_a, "name"_a,
             "Names weights for refitting.")
        .def(
            "mark_weights_refittable", method<&Network::markWeightsRefittable>(), "name"_a,
            "With REFIT_INDIVIDUAL: weights of this name can be refitted. False for unknown names.")
        .def("unmark_weights_refittable", method<&Network::unmarkWeightsRefittable>(), "name"_a,
             "Takes mark_weights_refittable() back. False for unknown names.")
        .def("are_weights_marked_refittable", method<&Network::areWeightsMarkedRefittable>(),
             "name"_a, "Whether mark_weights_refittable() was called for the name.");
}

void bind_math(nb::class_<Network>& c) {
    c.def("add_activation", method<&Network::addActivation>(), "input"_a, "type"_a,
          "A function of one floating-point value, element by element; alpha and beta are set in "
          "the layer.")
        .def("add_parametric_relu", method<&Network::addParametricReLU>(), "input"_a, "slopes"_a,
             "x >= 0 ? x : slope x; the slopes are broadcast to the input.")
        .def("add_elementwise", method<&Network::addElementWise>(), "input1"_a, "input2"_a, "op"_a,
             "A function of two tensors of one type and rank; sizes are equal or 1.")
        .def("add_unary", method<&Network::addUnary>(), "input"_a, "op"_a,
             "A function of one value, element by element.")
        .def("add_softmax", method<&Network::addSoftMax>(), "input"_a,
             "Exponentials divided by their sum along one axis, by default max(0, rank - 3): see "
             "ISoftMaxLayer.axes.")
        .def("add_ragged_softmax", method<&Network::addRaggedSoftMax>(), "input"_a, "bounds"_a,
             "Softmax over the first bounds[z] elements of each row; input Z x S, bounds INT32 Z x "
             "1.")
        .def("add_reduce", method<&Network::addReduce>(), "input"_a, "op"_a, "axes"_a,
             "keep_dims"_a, "axes: bit i is dimension i.")
        .def(
            "add_topk",
            [](const Self& self, trt::ITensor& input, trt::TopKOperation op, int32_t k,
               uint32_t axes, trt::DataType type) {
                return part(self.p->addTopK(input, op, k, axes, type), self);
            },
            "input"_a, "op"_a, "k"_a, "axes"_a, "indices_type"_a = trt::DataType::kINT32,
            "The k largest or smallest along an axis, sorted; outputs are values and indices. "
            "axes: one bit; indices_type: INT32 or INT64. Of equal values the lower index comes "
            "first.")
        .def("add_cumulative", method<&Network::addCumulative>(), "input"_a, "axis"_a, "op"_a,
             "exclusive"_a, "reverse"_a,
             "Running sums along an axis, which is a constant scalar tensor.")
        .def("add_matrix_multiply", method<&Network::addMatrixMultiply>(), "input0"_a, "op0"_a,
             "input1"_a, "op1"_a,
             "Products of the last two dimensions; those before are equal or 1. With VECTOR the "
             "last one is a vector.")
        .def(
            "add_einsum",
            [](const Self& self, const Tensors& inputs, const char* equation) {
                return part(self.p->addEinsum(inputs.data(), count_of(inputs), equation), self);
            },
            "inputs"_a, "equation"_a, "Sums of products by an equation such as \"ij,jk->ik\".");
}

void bind_quantisers(nb::class_<Network>& c) {
    c.def(
         "add_quantize",
         [](const Self& self, trt::ITensor& input, trt::ITensor& scale, trt::DataType type) {
             return part(self.p->addQuantize(input, scale, type), self);
         },
         "input"_a, "scale"_a, "output_type"_a = trt::DataType::kINT8,
         "round(x / scale), halves to even, clamped to the type: INT8, UINT8, FP8, INT4 or FP4. "
         "The scale is a scalar, one per element of the layer's axis, or one per block.")
        .def(
            "add_dequantize",
            [](const Self& self, trt::ITensor& input, trt::ITensor& scale, trt::DataType type) {
                return part(self.p->addDequantize(input, scale, type), self);
            },
            "input"_a, "scale"_a, "output_type"_a = trt::DataType::kFLOAT,
            "x * scale as FLOAT, HALF or BF16; scales as for add_quantize().")
        .def("add_dynamic_quantize", method<&Network::addDynamicQuantize>(), "input"_a, "axis"_a,
             "block_size"_a, "output_type"_a, "scale_type"_a,
             "As add_dynamic_quantize_v2() with blocks along one axis.")
        .def("add_dynamic_quantize_v2", method<&Network::addDynamicQuantizeV2>(), "input"_a,
             "block_shape"_a, "output_type"_a, "scale_type"_a,
             "Quantises blocks to FP4 or FP8 by scales that it computes; outputs are the quantised "
             "tensor and the scales, of FP8 or E8M0.");
}

void bind_windows(nb::class_<Network>& c) {
    c.def("add_convolution_nd", method<&Network::addConvolutionNd>(), "input"_a,
          "num_output_maps"_a, "kernel_shape"_a, "kernel"_a.none(), "bias"_a.none() = nb::none(),
          "Kernel of one to three sizes; weights that are None are given as inputs 1 and 2.")
        .def("add_deconvolution_nd", method<&Network::addDeconvolutionNd>(), "input"_a,
             "num_output_maps"_a, "kernel_shape"_a, "kernel"_a.none(), "bias"_a.none() = nb::none(),
             "A transposed convolution; padding crops. Weights are C, K / groups, window; given as "
             "for add_convolution_nd().")
        .def("add_pooling_nd", method<&Network::addPoolingNd>(), "input"_a, "type"_a,
             "window_size"_a,
             "Maximum or average of windows of one to three sizes, over as many last dimensions.")
        .def("add_lrn", method<&Network::addLRN>(), "input"_a, "window"_a, "alpha"_a, "beta"_a,
             "k"_a,
             "x / (k + alpha / window * sum of squares over neighbouring channels) ^ beta; the "
             "window is odd.")
        .def("add_scale", method<&Network::addScale>(), "input"_a, "mode"_a,
             "shift"_a.none() = nb::none(), "scale"_a.none() = nb::none(),
             "power"_a.none() = nb::none(),
             "(x * scale + shift) ^ power; None leaves its step out. Channels are the third "
             "dimension from the end.")
        .def("add_scale_nd", method<&Network::addScaleNd>(), "input"_a, "mode"_a,
             "shift"_a.none() = nb::none(), "scale"_a.none() = nb::none(),
             "power"_a.none() = nb::none(), "channel_axis"_a = 0,
             "(x * scale + shift) ^ power; None leaves its step out.")
        .def("add_padding_nd", method<&Network::addPaddingNd>(), "input"_a, "pre_padding"_a,
             "post_padding"_a,
             "Zeros around, or (negative) cropping of, the last two dimensions; two sizes each.")
        .def("add_resize", method<&Network::addResize>(), "input"_a,
             "Resamples; set the layer's shape or scales, or give input 1.")
        .def("add_grid_sample", method<&Network::addGridSample>(), "input"_a, "grid"_a,
             "Samples the input, N C H W, at the places of the grid, N H' W' 2, whose x and y run "
             "from -1 to 1.")
        .def("add_normalization", method<&Network::addNormalization>(), "input"_a, "scale"_a,
             "bias"_a, "axesMask"_a,
             "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes of the bits. "
             "Scale and bias have the input's rank; for groups they are 1 G 1 ... .")
        .def("add_normalization_v2", method<&Network::addNormalizationV2>(), "input"_a, "scale"_a,
             "bias"_a, "axesMask"_a,
             "As add_normalization(); for groups, scale and bias are 1 C 1 ... .");
}

void bind_data(nb::class_<Network>& c) {
    c.def(
         "add_concatenation",
         [](const Self& self, const Tensors& inputs) {
             return part(self.p->addConcatenation(inputs.data(), count_of(inputs)), self);
         },
         "inputs"_a,
         "Tensors of one type, one after another along the layer's axis, by default max(0, rank - "
         "3).")
        .def("add_shuffle", method<&Network::addShuffle>(), "input"_a,
             "Transposes, reshapes, transposes again; each step is optional and set in the layer.")
        .def("add_slice", method<&Network::addSlice>(), "input"_a, "start"_a, "shape"_a, "stride"_a,
             "Every stride-th element from start; shape is that of the result.")
        .def("add_shape", method<&Network::addShape>(), "input"_a,
             "The shape of the input as a vector of INT64.")
        .def("add_gather", method<&Network::addGather>(), "input"_a, "indices"_a, "axis"_a,
             "Slices of the input along an axis at the indices (ONNX Gather).")
        .def("add_gather_v2", method<&Network::addGatherV2>(), "input"_a, "indices"_a, "mode"_a,
             "Elements or slices of the input at the indices, as the mode says.")
        .def("add_scatter", method<&Network::addScatter>(), "data"_a, "indices"_a, "updates"_a,
             "mode"_a,
             "A copy of data with updates written at the indices. Of two to one place one stays, "
             "no matter which.")
        .def("add_one_hot", method<&Network::addOneHot>(), "indices"_a, "values"_a, "depth"_a,
             "axis"_a,
             "values[1] where the new axis is at the index, else values[0]; depth, a scalar shape "
             "tensor, is its size.")
        .def(
            "add_non_zero",
            [](const Self& self, trt::ITensor& input, trt::DataType type) {
                return part(self.p->addNonZero(input, type), self);
            },
            "input"_a, "indices_type"_a = trt::DataType::kINT32,
            "Indices of elements that are not zero, rank x count, in row-major order; the count "
            "depends on data. indices_type: INT32 or INT64.");
}

void bind_sources(nb::class_<Network>& c) {
    c.def("add_select", method<&Network::addSelect>(), "condition"_a, "then_input"_a,
          "else_input"_a, "condition ? then : else; sizes are equal or 1.")
        .def("add_constant", method<&Network::addConstant>(), "shape"_a, "weights"_a,
             "A numpy array is kept and not copied if it is contiguous.")
        .def("add_identity", method<&Network::addIdentity>(), "input"_a, "The input itself.")
        .def("add_cast", method<&Network::addCast>(), "input"_a, "to_type"_a,
             "Converts types: floating point to integer towards zero, anything to BOOL as != 0.")
        .def(
            "add_fill",
            [](const Self& self, const DimsArg& shape, trt::FillOperation op, trt::DataType type) {
                return part(self.p->addFill(shape.value, op, type), self);
            },
            "shape"_a, "op"_a, "output_type"_a = trt::DataType::kFLOAT,
            "A tensor of evenly spaced or random numbers; alpha and beta are set in the layer or "
            "given as inputs 1 and 2.")
        .def("add_squeeze", &add_squeeze, "input"_a, "axes"_a.none() = nb::none(),
             "Removes axes of size 1; axes are a constant tensor, or None for all whose size is "
             "known to be 1.")
        .def("add_unsqueeze", method<&Network::addUnsqueeze>(), "input"_a, "axes"_a,
             "Adds axes of size 1; axes of the result are a constant tensor.")
        .def(
            "add_nms",
            [](const Self& self, trt::ITensor& boxes, trt::ITensor& scores, trt::ITensor& most,
               trt::DataType type) {
                return part(self.p->addNMS(boxes, scores, most, type), self);
            },
            "boxes"_a, "scores"_a, "max_output_boxes_per_class"_a,
            "indices_type"_a = trt::DataType::kINT32,
            "Non-maximum suppression. Boxes N x boxes x 4 (or x classes x 4), scores N x boxes x "
            "classes, the most boxes per class a scalar. Outputs: count x 3 indices (batch, class, "
            "box), and the count, which depends on data.")
        .def("add_reverse_sequence", method<&Network::addReverseSequence>(), "input"_a,
             "sequence_lens"_a, "Reverses the first sequence_lens[b] elements of each sequence b.")
        .def("add_assertion", method<&Network::addAssertion>(), "condition"_a, "message"_a,
             "Fails the build or the run, with the message, unless all elements of the condition, "
             "a BOOL shape tensor, are true.");
}

void bind_transformers(nb::class_<Network>& c) {
    c.def("add_loop", method<&Network::addLoop>(),
          "A loop; its body is what is added between its layers.")
        .def("add_if_conditional", method<&Network::addIfConditional>(),
             "Two branches, of which one runs.")
        .def("add_attention", method<&Network::addAttention>(), "query"_a, "key"_a, "value"_a,
             "norm_op"_a, "causal"_a, "As add_attention_v2(), where causal stands for UPPER_LEFT.")
        .def("add_attention_v2", method<&Network::addAttentionV2>(), "query"_a, "key"_a, "value"_a,
             "norm_op"_a, "causal_kind"_a,
             "softmax(Q K^T + mask) V of B H S D tensors; the heads of Q are a multiple of those "
             "of K and V. There is no scale: fold it into Q.")
        .def("add_rotary_embedding", method<&Network::addRotaryEmbedding>(), "input"_a,
             "cos_cache"_a, "sin_cache"_a, "interleaved"_a, "rotary_embedding_dim"_a,
             "Rotates pairs of the last dimension of B H S D by position; cosines and sines are B "
             "S R/2, R = rotary_embedding_dim, 0 for all of D.")
        .def("add_kv_cache_update", method<&Network::addKVCacheUpdate>(), "cache"_a, "update"_a,
             "write_indices"_a, "cache_mode"_a,
             "Writes tokens, B H S D, into a cache, B H M D, in place, from write_indices (B) on. "
             "As an output it lies where the cache, an input, lies: give both one address.")
        .def("add_moe", method<&Network::addMoE>(), "hidden_states"_a,
             "selected_experts_for_tokens"_a, "scores_for_selected_experts"_a,
             "Mixture of experts: hidden states B S C, indices of experts B S K, their scores B S "
             "K. Weights are set in the layer.")
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
            "groups"_a = std::vector<int64_t>{},
            "Exchanges data between GPUs by the context's communicator. root: -1 where there is "
            "none; groups: ranks that take part, [] for all.");
}

/// Strings of a kernel in CUDA; what they point to lives during the call.
Part<trt::ILayer> add_cuda_source(const Self& self, const Tensors& inputs, const char* name,
                                  const char* source, const char* kernel, const char* signature,
                                  const char* grid, const char* block,
                                  const std::optional<std::string>& arguments,
                                  const std::optional<std::string>& shared_bytes) {
    const ingot::CudaSource text{name,
                                 source,
                                 kernel,
                                 signature,
                                 arguments ? arguments->c_str() : nullptr,
                                 grid,
                                 block,
                                 shared_bytes ? shared_bytes->c_str() : nullptr};
    return part(ingot::addCudaSourceLayer(*self.p, inputs.data(), count_of(inputs), text), self);
}

} // namespace

void bind_network(nb::module_& m) {
    nb::class_<Network> c(
        m, "INetworkDefinition", nb::is_weak_referenceable(),
        "A network, made layer by layer or by OnnxParser. Methods add_... return None when tensors "
        "do not fit; the error goes to the recorder or the logger. One thread at a time.");
    bind_frame(c);
    bind_marks(c);
    bind_math(c);
    bind_quantisers(c);
    bind_windows(c);
    bind_data(c);
    bind_sources(c);
    bind_transformers(c);
    c.def("add_cuda_source_layer", &add_cuda_source, "inputs"_a, "name"_a, "source"_a, "kernel"_a,
          "signature"_a, "grid"_a, "block"_a, "arguments"_a.none() = nb::none(),
          "shared_bytes"_a.none() = nb::none(),
          "Beyond TensorRT: a layer that runs a kernel given as CUDA C++ text; see ingot.h.");
}

} // namespace ingot::python
