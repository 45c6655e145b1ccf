// SPDX-License-Identifier: Apache-2.0
// Network: INetworkDefinition. An ordered list of layers, which are emitted into a graph when a
// type is queried, and again when an engine is built.
#pragma once

#include "api/tensorrt/network/emission.h"
#include "api/tensorrt/network/layer.h"
#include "api/tensorrt/report.h"
#include "engine/engine.h"

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot {
struct CudaSource;
} // namespace ingot

namespace ingot::api {

class AttentionUnit;
class Conditional;
class LoopUnit;

class Network final : public nv::INetworkDefinition {
public:
    Network(nv::IBuilder& builder, nv::NetworkDefinitionCreationFlags flags, const Report& report);
    ~Network() override;

    /// Silent while the parser reads a node.
    const Report& report() const { return reading_ != nullptr ? *reading_ : report_; }
    const std::vector<std::unique_ptr<LayerBase>>& layers() const { return layers_; }
    const std::vector<std::unique_ptr<NetworkTensor>>& inputs() const { return inputs_; }
    const std::vector<NetworkTensor*>& outputs() const { return outputs_; }
    const std::vector<NetworkTensor*>& shape_outputs() const { return shape_outputs_; }
    /// The tensors of markDebug().
    std::vector<std::string> debug_names() const;
    /// The marked tensors that are neither inputs nor outputs: they become extra outputs behind the
    /// others.
    std::vector<const NetworkTensor*> debug_outputs() const;
    bool debug_unfused() const { return debug_unfused_; }

    /// Invalidates cached types after a change of settings.
    void changed() const;
    /// Emits the layers that the tensor needs. Errors: those of the layers.
    const Type& type_of(const NetworkTensor& t) const;
    /// nullopt where type_of has errors.
    std::optional<Type> try_type_of(const NetworkTensor& t) const;
    /// The whole graph, with outputs. Errors: those of the layers; InvalidArgument without outputs.
    Graph build(const Emission::Marks& marks = {}) const;
    /// Whether a tensor's values are used as a shape.
    bool is_shape(const NetworkTensor& t) const;
    /// Whether they are also used as data.
    bool is_data(const NetworkTensor& t) const;
    const Places& places_of(const NetworkTensor& t) const;
    /// The graph of type queries, as far as it is emitted.
    Emission& types() const;

    /// The tensor as our class. Errors: InvalidArgument for a tensor of another network.
    NetworkTensor& ours(nv::ITensor& t, std::string_view what) const;
    /// Takes a layer, makes its outputs, and checks its inputs. Errors: InvalidArgument; the
    /// network is then unchanged.
    template <class L>
    L* append(std::unique_ptr<L> layer, const std::vector<NetworkTensor*>& in) {
        L* p = layer.get();
        take(std::move(layer), in);
        return p;
    }
    /// The body of an add... method: a layer of class L whose inputs are tensors of the caller.
    template <class L, class... Args>
    L* add(std::string_view method, std::initializer_list<nv::ITensor*> in, Args... args) noexcept {
        return report().guard(method, static_cast<L*>(nullptr), [&] {
            std::vector<NetworkTensor*> tensors;
            for (nv::ITensor* t : in) {
                tensors.push_back(&ours(*t, str("input ", tensors.size())));
            }
            return append(std::make_unique<L>(args...), std::move(tensors));
        });
    }
    /// The same for lists of tensors.
    template <class L, class... Args>
    L* add_list(std::string_view method, nv::ITensor* const* in, int32_t count,
                Args... args) noexcept {
        return report().guard(method, static_cast<L*>(nullptr), [&] {
            return append(std::make_unique<L>(args...), list(in, count));
        });
    }

    // State that a parsed model adds.

    /// Adds an initializer, which comes before inputs and layers in graphs. Returns its index.
    size_t add_initializer(std::string name, Tensor t);
    struct Initializer {
        std::string name;
        Tensor tensor;
    };
    const std::vector<Initializer>& initializers() const { return initializers_; }
    /// The initializer that owns the memory of the weights.
    std::optional<size_t> initializer_of(const nv::Weights& w) const;
    /// While it lives, layers are made from a model's node: they are not checked, cached types
    /// stay, and errors go to `report`.
    class Reading {
    public:
        Reading(Network& network, const Report& report)
            : network_(network), outer_(network.reading_) {
            network_.reading_ = &report;
        }
        Reading(const Reading&) = delete;
        Reading& operator=(const Reading&) = delete;
        ~Reading() { network_.reading_ = outer_; }

    private:
        Network& network_;
        const Report* outer_;
    };
    bool is_reading() const { return reading_ != nullptr; }

    /// The name of setWeightsName(), or null.
    const std::string* given_name(const nv::Weights& w) const;
    /// The names of markWeightsRefittable().
    const std::set<std::string, std::less<>>& refittable_names() const { return refittable_; }
    Properties properties;
    /// Keeps the owner alive as long as the network.
    void keep(std::shared_ptr<const void> owner) { kept_.push_back(std::move(owner)); }
    /// Removes everything added since a state(), for a model that cannot be parsed.
    struct State {
        size_t layers, inputs, outputs, initializers;
    };
    State state() const;
    void restore(const State& s);

    nv::ITensor* addInput(const char* name, nv::DataType type,
                          const nv::Dims& dimensions) noexcept override;
    void markOutput(nv::ITensor& tensor) noexcept override;
    bool markDebug(nv::ITensor& tensor) noexcept override;
    bool unmarkDebug(nv::ITensor& tensor) noexcept override;
    bool isDebugTensor(const nv::ITensor& tensor) const noexcept override;
    bool markUnfusedTensorsAsDebugTensors() noexcept override;
    bool unmarkUnfusedTensorsAsDebugTensors() noexcept override;
    nv::IActivationLayer* addActivation(nv::ITensor& input,
                                        nv::ActivationType type) noexcept override;
    nv::ILRNLayer* addLRN(nv::ITensor& input, int64_t window, float alpha, float beta,
                          float k) noexcept override;
    nv::IScaleLayer* addScale(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                              nv::Weights scale, nv::Weights power) noexcept override;
    nv::ISoftMaxLayer* addSoftMax(nv::ITensor& input) noexcept override;
    nv::IConcatenationLayer* addConcatenation(nv::ITensor* const* inputs,
                                              int32_t nb_inputs) noexcept override;
    nv::IElementWiseLayer* addElementWise(nv::ITensor& input1, nv::ITensor& input2,
                                          nv::ElementWiseOperation op) noexcept override;
    nv::IUnaryLayer* addUnary(nv::ITensor& input, nv::UnaryOperation operation) noexcept override;
    nv::IShuffleLayer* addShuffle(nv::ITensor& input) noexcept override;
    nv::IOneHotLayer* addOneHot(nv::ITensor& indices, nv::ITensor& values, nv::ITensor& depth,
                                int32_t axis) noexcept override;
    int32_t getNbLayers() const noexcept override;
    nv::ILayer* getLayer(int32_t index) const noexcept override;
    int32_t getNbInputs() const noexcept override;
    nv::ITensor* getInput(int32_t index) const noexcept override;
    int32_t getNbOutputs() const noexcept override;
    nv::ITensor* getOutput(int32_t index) const noexcept override;
    nv::IReduceLayer* addReduce(nv::ITensor& input, nv::ReduceOperation operation,
                                uint32_t reduce_axes, bool keep_dimensions) noexcept override;
    nv::ITopKLayer* addTopK(nv::ITensor& input, nv::TopKOperation op, int32_t k,
                            uint32_t reduce_axes, nv::DataType indices_type) noexcept override;
    nv::IGatherLayer* addGather(nv::ITensor& data, nv::ITensor& indices,
                                int32_t axis) noexcept override;
    nv::IGatherLayer* addGatherV2(nv::ITensor& data, nv::ITensor& indices,
                                  nv::GatherMode mode) noexcept override;
    nv::IRaggedSoftMaxLayer* addRaggedSoftMax(nv::ITensor& input,
                                              nv::ITensor& bounds) noexcept override;
    nv::IMatrixMultiplyLayer* addMatrixMultiply(nv::ITensor& input0, nv::MatrixOperation op0,
                                                nv::ITensor& input1,
                                                nv::MatrixOperation op1) noexcept override;
    nv::INonZeroLayer* addNonZero(nv::ITensor& input, nv::DataType indices_type) noexcept override;
    nv::IConstantLayer* addConstant(const nv::Dims& dimensions,
                                    nv::Weights weights) noexcept override;
    nv::IIdentityLayer* addIdentity(nv::ITensor& input) noexcept override;
    nv::ICastLayer* addCast(nv::ITensor& input, nv::DataType to_type) noexcept override;
    void removeTensor(nv::ITensor& tensor) noexcept override;
    void unmarkOutput(nv::ITensor& tensor) noexcept override;
    nv::ISliceLayer* addSlice(nv::ITensor& input, const nv::Dims& start, const nv::Dims& size,
                              const nv::Dims& stride) noexcept override;
    void setName(const char* name) noexcept override;
    const char* getName() const noexcept override;
    nv::IShapeLayer* addShape(nv::ITensor& input) noexcept override;
    bool markOutputForShapes(nv::ITensor& tensor) noexcept override;
    bool unmarkOutputForShapes(nv::ITensor& tensor) noexcept override;
    nv::IParametricReLULayer* addParametricReLU(nv::ITensor& input,
                                                nv::ITensor& slope) noexcept override;
    nv::IConvolutionLayer* addConvolutionNd(nv::ITensor& input, int64_t nb_output_maps,
                                            const nv::Dims& kernel_size, nv::Weights kernel_weights,
                                            nv::Weights bias_weights) noexcept override;
    nv::IPoolingLayer* addPoolingNd(nv::ITensor& input, nv::PoolingType type,
                                    const nv::Dims& window_size) noexcept override;
    nv::IDeconvolutionLayer* addDeconvolutionNd(nv::ITensor& input, int64_t nb_output_maps,
                                                const nv::Dims& kernel_size,
                                                nv::Weights kernel_weights,
                                                nv::Weights bias_weights) noexcept override;
    nv::IScaleLayer* addScaleNd(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                                nv::Weights scale, nv::Weights power,
                                int32_t channel_axis) noexcept override;
    nv::IResizeLayer* addResize(nv::ITensor& input) noexcept override;
    nv::ILoop* addLoop() noexcept override;
    nv::IIfConditional* addIfConditional() noexcept override;
    nv::ISelectLayer* addSelect(nv::ITensor& condition, nv::ITensor& then_input,
                                nv::ITensor& else_input) noexcept override;
    nv::IAssertionLayer* addAssertion(nv::ITensor& condition,
                                      const char* message) noexcept override;
    nv::IPaddingLayer* addPaddingNd(nv::ITensor& input, const nv::Dims& pre_padding,
                                    const nv::Dims& post_padding) noexcept override;
    bool setWeightsName(nv::Weights weights, const char* name) noexcept override;
    void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override;
    nv::IErrorRecorder* getErrorRecorder() const noexcept override;
    nv::IFillLayer* addFill(const nv::Dims& dimensions, nv::FillOperation op,
                            nv::DataType output_type) noexcept override;
    nv::IDequantizeLayer* addDequantize(nv::ITensor& input, nv::ITensor& scale,
                                        nv::DataType output_type) noexcept override;
    nv::IQuantizeLayer* addQuantize(nv::ITensor& input, nv::ITensor& scale,
                                    nv::DataType output_type) noexcept override;
    nv::IDynamicQuantizeLayer* addDynamicQuantizeV2(nv::ITensor& input, const nv::Dims& block_shape,
                                                    nv::DataType output_type,
                                                    nv::DataType scale_type) noexcept override;
    nv::IScatterLayer* addScatter(nv::ITensor& data, nv::ITensor& indices, nv::ITensor& updates,
                                  nv::ScatterMode mode) noexcept override;
    nv::IEinsumLayer* addEinsum(nv::ITensor* const* inputs, int32_t nb_inputs,
                                const char* equation) noexcept override;
    nv::IGridSampleLayer* addGridSample(nv::ITensor& input, nv::ITensor& grid) noexcept override;
    nv::INMSLayer* addNMS(nv::ITensor& boxes, nv::ITensor& scores,
                          nv::ITensor& max_output_boxes_per_class,
                          nv::DataType indices_type) noexcept override;
    nv::IReverseSequenceLayer* addReverseSequence(nv::ITensor& input,
                                                  nv::ITensor& sequence_lens) noexcept override;
    nv::INormalizationLayer* addNormalization(nv::ITensor& input, nv::ITensor& scale,
                                              nv::ITensor& bias,
                                              uint32_t axes_mask) noexcept override;
    nv::INormalizationLayer* addNormalizationV2(nv::ITensor& input, nv::ITensor& scale,
                                                nv::ITensor& bias,
                                                uint32_t axes_mask) noexcept override;
    nv::ICumulativeLayer* addCumulative(nv::ITensor& input, nv::ITensor& axis,
                                        nv::CumulativeOperation operation, bool exclusive,
                                        bool reverse) noexcept override;
    nv::IAttention* addAttentionV2(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                                   nv::AttentionNormalizationOp norm_op,
                                   nv::CausalMaskKind causal_kind) noexcept override;
    nv::IRotaryEmbeddingLayer* addRotaryEmbedding(nv::ITensor& input, nv::ITensor& cos_cache,
                                                  nv::ITensor& sin_cache, bool interleaved,
                                                  int32_t rotary_embedding_dim) noexcept override;
    nv::IKVCacheUpdateLayer* addKVCacheUpdate(nv::ITensor& cache, nv::ITensor& update,
                                              nv::ITensor& write_indices,
                                              nv::KVCacheMode cache_mode) noexcept override;
    nv::IMoELayer* addMoE(nv::ITensor& hidden_states, nv::ITensor& selected_experts_for_tokens,
                          nv::ITensor& scores_for_selected_experts) noexcept override;
    nv::IDistCollectiveLayer* addDistCollective(nv::ITensor& input,
                                                nv::CollectiveOperation dist_collective_op,
                                                nv::ReduceOperation reduce_op, int64_t root,
                                                int64_t* groups,
                                                int64_t group_size) noexcept override;
    nv::ISqueezeLayer* addSqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept override;
    nv::IUnsqueezeLayer* addUnsqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept override;
    nv::IPluginV3Layer* addPluginV3(nv::ITensor* const* inputs, int32_t nb_inputs,
                                    nv::ITensor* const* shape_inputs, int32_t nb_shape_inputs,
                                    nv::IPluginV3& plugin) noexcept override;
    nv::IBuilder& getBuilder() const noexcept override;
    nv::NetworkDefinitionCreationFlags getFlags() const noexcept override;
    bool getFlag(
        nv::NetworkDefinitionCreationFlag network_definition_creation_flag) const noexcept override;
    bool markWeightsRefittable(const char* name) noexcept override;
    bool unmarkWeightsRefittable(const char* name) noexcept override;
    bool areWeightsMarkedRefittable(const char* name) const noexcept override;
    nv::IDynamicQuantizeLayer* addDynamicQuantize(nv::ITensor& input, int32_t axis,
                                                  int32_t block_size, nv::DataType output_type,
                                                  nv::DataType scale_type) noexcept override;
    nv::IPluginV2Layer* addPluginV2(nv::ITensor* const* inputs, int32_t nb_inputs,
                                    nv::IPluginV2& plugin) noexcept override;
    nv::ILayer* add_source(nv::ITensor* const* inputs, int32_t nb_inputs,
                           const CudaSource* source) noexcept;

private:
    friend class NetworkTensor;
    friend class LayerBase;
    void take(std::unique_ptr<LayerBase> layer, std::vector<NetworkTensor*> in);
    std::vector<NetworkTensor*> list(nv::ITensor* const* in, int32_t count) const;
    NetworkTensor* find(std::string_view name) const;

    Report report_;
    nv::IBuilder& builder_;
    nv::NetworkDefinitionCreationFlags flags_;
    std::string name_;
    std::vector<std::unique_ptr<NetworkTensor>> inputs_;
    std::vector<std::unique_ptr<LayerBase>> layers_;
    std::vector<NetworkTensor*> outputs_;
    std::vector<NetworkTensor*> shape_outputs_;
    std::set<const NetworkTensor*> debug_;
    bool debug_unfused_ = false;
    std::vector<Initializer> initializers_;
    std::unordered_map<const void*, size_t> initializers_by_memory_;
    const Report* reading_ = nullptr;
    std::vector<std::pair<nv::Weights, std::string>> weight_names_;
    std::set<std::string, std::less<>> refittable_;
    std::vector<std::shared_ptr<const void>> kept_;
    std::vector<std::unique_ptr<LoopUnit>> loops_;
    std::vector<std::unique_ptr<Conditional>> conditionals_;
    std::vector<std::unique_ptr<AttentionUnit>> attentions_;

    // Caches of the type queries.
    mutable std::unique_ptr<Graph> graph_;
    mutable std::unique_ptr<Emission> emission_;
    mutable std::unordered_map<const NetworkTensor*, Places> places_;
    mutable size_t next_ = 0; // the first layer that has not been emitted in order
};

template <class F>
bool LayerBase::change(std::string_view method, const F& f) noexcept {
    return adjust(method, [&] {
        require_free();
        require_settable();
        f();
        leave_model();
    });
}

template <class F>
bool LayerBase::adjust(std::string_view method, const F& f) noexcept {
    return network().report().guard(method, false, [&] {
        return with_place([&] { return described(); },
                          [&] {
                              f();
                              network().changed();
                              return true;
                          });
    });
}

template <class T>
void LayerBase::assign(std::string_view method, T& member, T value) noexcept {
    change(method, [&] { member = std::move(value); });
}

} // namespace ingot::api
