// SPDX-License-Identifier: Apache-2.0
// INetworkDefinition: a network that is made layer by layer, or by the ONNX parser. Included by
// NvInfer.h.
#pragma once

#include "ingot/layers_attention.h"
#include "ingot/layers_control.h"
#include "ingot/layers_data.h"
#include "ingot/layers_math.h"
#include "ingot/layers_window.h"

namespace nvinfer1 {

enum class LayerType : int32_t {
    kCONVOLUTION = 0,
    kCAST = 1,
    kACTIVATION = 2,
    kPOOLING = 3,
    kLRN = 4,
    kSCALE = 5,
    kSOFTMAX = 6,
    kDECONVOLUTION = 7,
    kCONCATENATION = 8,
    kELEMENTWISE = 9,
    kPLUGIN = 10, ///< Has no class but ILayer: a kernel given as text, or what no class describes
    kUNARY = 11,
    kPADDING = 12,
    kSHUFFLE = 13,
    kREDUCE = 14,
    kTOPK = 15,
    kGATHER = 16,
    kMATRIX_MULTIPLY = 17,
    kRAGGED_SOFTMAX = 18,
    kCONSTANT = 19,
    kIDENTITY = 20,
    kPLUGIN_V2 = 21,
    kSLICE = 22,
    kSHAPE = 23,
    kPARAMETRIC_RELU = 24,
    kRESIZE = 25,
    kTRIP_LIMIT = 26,
    kRECURRENCE = 27,
    kITERATOR = 28,
    kLOOP_OUTPUT = 29,
    kSELECT = 30,
    kFILL = 31,
    kQUANTIZE = 32,
    kDEQUANTIZE = 33,
    kCONDITION = 34,
    kCONDITIONAL_INPUT = 35,
    kCONDITIONAL_OUTPUT = 36,
    kSCATTER = 37,
    kEINSUM = 38,
    kASSERTION = 39,
    kONE_HOT = 40,
    kNON_ZERO = 41,
    kGRID_SAMPLE = 42,
    kNMS = 43,
    kREVERSE_SEQUENCE = 44,
    kNORMALIZATION = 45,
    kPLUGIN_V3 = 46,
    kSQUEEZE = 47,
    kUNSQUEEZE = 48,
    kCUMULATIVE = 49,
    kDYNAMIC_QUANTIZE = 50,
    kATTENTION_INPUT = 51,
    kATTENTION_OUTPUT = 52,
    kROTARY_EMBEDDING = 53,
    kKVCACHE_UPDATE = 54,
    kMOE = 55,
    kDIST_COLLECTIVE = 56,
};
INGOT_ENUM_MAX(LayerType, 57)

class IBuilder;

enum class NetworkDefinitionCreationFlag : int32_t {
    /// Types are as the network says. Always so, unless the precision flags of older generations
    /// are set in the configuration; with this flag they are refused.
    kSTRONGLY_TYPED = 0,
    kPREFER_JIT_PYTHON_PLUGINS = 1, ///< No effect
    kPREFER_AOT_PYTHON_PLUGINS = 2, ///< No effect
    // Older generations.
    kEXPLICIT_BATCH TRT_DEPRECATED_ENUM = 16, ///< Always so
};
INGOT_ENUM_MAX(NetworkDefinitionCreationFlag, 3)
/// Set of NetworkDefinitionCreationFlag: bit i stands for flag i.
using NetworkDefinitionCreationFlags = uint32_t;

/// A network.
///
/// Lifetime: made by IBuilder::createNetworkV2(), deleted by the caller at any time, also before an
/// engine built from it is used. Tensors and layers belong to it.
/// Thread safety: one thread at a time; it must not change while it is built.
/// Errors: add... methods return nullptr when tensors of other networks, types, ranks or numbers do
/// not fit; the message names layer, input, found and expected. Settings that depend on others are
/// checked when a shape is queried and at build. Axes as bits: bit i is dimension i.
class INetworkDefinition : public INoCopy {
public:
    virtual ~INetworkDefinition() noexcept = default;

    /// An input; -1 for sizes known only at run time, which need an optimisation profile. nullptr
    /// when the name is taken.
    virtual ITensor* addInput(const char* name, DataType type, const Dims& dimensions) noexcept = 0;
    /// Makes a tensor an output of the network. Outputs are in the order of marking.
    virtual void markOutput(ITensor& tensor) noexcept = 0;
    /// Lets contexts show this tensor to an IDebugListener, under the name it has when the engine
    /// is built. Inputs and outputs can be marked too. A marked inner tensor is computed and stored
    /// by every run, whether it is switched on or not: layers are not fused across it, and each
    /// context has memory for it beside getDeviceMemorySizeV2(). A tensor inside a loop or
    /// conditional makes the build fail, and so does one with the name of another marked tensor or
    /// an output. \returns false when it is marked already, or of another network.
    virtual bool markDebug(ITensor& tensor) noexcept = 0;
    /// \returns false when it is not marked.
    virtual bool unmarkDebug(ITensor& tensor) noexcept = 0;
    virtual bool isDebugTensor(const ITensor& tensor) const noexcept = 0;
    /// Lets contexts show the tensors that fusion leaves to an IDebugListener, without hindering
    /// fusion. Costs nothing until it is switched on.
    virtual bool markUnfusedTensorsAsDebugTensors() noexcept = 0;
    virtual bool unmarkUnfusedTensorsAsDebugTensors() noexcept = 0;

    virtual IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept = 0;
    virtual ILRNLayer* addLRN(ITensor& input, int64_t window, float alpha, float beta,
                              float k) noexcept = 0;
    /// Along the third from last dimension for kCHANNEL.
    virtual IScaleLayer* addScale(ITensor& input, ScaleMode mode, Weights shift, Weights scale,
                                  Weights power) noexcept = 0;
    virtual ISoftMaxLayer* addSoftMax(ITensor& input) noexcept = 0;
    virtual IConcatenationLayer* addConcatenation(ITensor* const* inputs,
                                                  int32_t nbInputs) noexcept = 0;
    virtual IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2,
                                              ElementWiseOperation op) noexcept = 0;
    virtual IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept = 0;
    virtual IShuffleLayer* addShuffle(ITensor& input) noexcept = 0;
    virtual IOneHotLayer* addOneHot(ITensor& indices, ITensor& values, ITensor& depth,
                                    int32_t axis) noexcept = 0;

    virtual int32_t getNbLayers() const noexcept = 0;
    /// In the order of adding; of the class that getType() names. nullptr for a bad index.
    virtual ILayer* getLayer(int32_t index) const noexcept = 0;
    virtual int32_t getNbInputs() const noexcept = 0;
    virtual ITensor* getInput(int32_t index) const noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
    virtual ITensor* getOutput(int32_t index) const noexcept = 0;

    virtual IReduceLayer* addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                                    bool keepDimensions) noexcept = 0;
    virtual ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes,
                                DataType indicesType) noexcept = 0;
    /// kDEFAULT mode.
    virtual IGatherLayer* addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept = 0;
    virtual IGatherLayer* addGatherV2(ITensor& data, ITensor& indices,
                                      GatherMode mode) noexcept = 0;
    virtual IRaggedSoftMaxLayer* addRaggedSoftMax(ITensor& input, ITensor& bounds) noexcept = 0;
    virtual IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0,
                                                    ITensor& input1,
                                                    MatrixOperation op1) noexcept = 0;
    virtual INonZeroLayer* addNonZero(ITensor& input, DataType indicesType) noexcept = 0;
    /// As many weights as the dimensions have elements. They are not copied: they live until the
    /// network is built.
    virtual IConstantLayer* addConstant(const Dims& dimensions, Weights weights) noexcept = 0;
    virtual IIdentityLayer* addIdentity(ITensor& input) noexcept = 0;
    virtual ICastLayer* addCast(ITensor& input, DataType toType) noexcept = 0;
    /// Removes an input or output that nothing uses.
    virtual void removeTensor(ITensor& tensor) noexcept = 0;
    virtual void unmarkOutput(ITensor& tensor) noexcept = 0;
    virtual ISliceLayer* addSlice(ITensor& input, const Dims& start, const Dims& size,
                                  const Dims& stride) noexcept = 0;
    /// Name of the network and of its engine.
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;
    virtual IShapeLayer* addShape(ITensor& input) noexcept = 0;
    /// Makes an output whose values are shapes: IExecutionContext::inferShapes() gives them.
    /// Returns false when it is no shape tensor.
    virtual bool markOutputForShapes(ITensor& tensor) noexcept = 0;
    virtual bool unmarkOutputForShapes(ITensor& tensor) noexcept = 0;
    virtual IParametricReLULayer* addParametricReLU(ITensor& input, ITensor& slope) noexcept = 0;
    /// Kernel of one to three sizes; empty weights are then given as inputs 1 and 2.
    virtual IConvolutionLayer* addConvolutionNd(ITensor& input, int64_t nbOutputMaps,
                                                const Dims& kernelSize, Weights kernelWeights,
                                                Weights biasWeights) noexcept = 0;
    virtual IPoolingLayer* addPoolingNd(ITensor& input, PoolingType type,
                                        const Dims& windowSize) noexcept = 0;
    /// As addConvolutionNd().
    virtual IDeconvolutionLayer* addDeconvolutionNd(ITensor& input, int64_t nbOutputMaps,
                                                    const Dims& kernelSize, Weights kernelWeights,
                                                    Weights biasWeights) noexcept = 0;
    virtual IScaleLayer* addScaleNd(ITensor& input, ScaleMode mode, Weights shift, Weights scale,
                                    Weights power, int32_t channelAxis) noexcept = 0;
    virtual IResizeLayer* addResize(ITensor& input) noexcept = 0;
    virtual ILoop* addLoop() noexcept = 0;
    virtual IIfConditional* addIfConditional() noexcept = 0;
    virtual ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput,
                                    ITensor& elseInput) noexcept = 0;
    virtual IAssertionLayer* addAssertion(ITensor& condition, const char* message) noexcept = 0;
    virtual IPaddingLayer* addPaddingNd(ITensor& input, const Dims& prePadding,
                                        const Dims& postPadding) noexcept = 0;
    /// Names weights for refitting. Returns false when no layer uses them.
    virtual bool setWeightsName(Weights weights, const char* name) noexcept = 0;
    /// \see IRuntime::setErrorRecorder
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    virtual IFillLayer* addFill(const Dims& dimensions, FillOperation op,
                                DataType outputType) noexcept = 0;
    virtual IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale,
                                            DataType outputType) noexcept = 0;
    virtual IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale,
                                        DataType outputType) noexcept = 0;
    virtual IDynamicQuantizeLayer* addDynamicQuantizeV2(ITensor& input, const Dims& blockShape,
                                                        DataType outputType,
                                                        DataType scaleType) noexcept = 0;
    virtual IScatterLayer* addScatter(ITensor& data, ITensor& indices, ITensor& updates,
                                      ScatterMode mode) noexcept = 0;
    virtual IEinsumLayer* addEinsum(ITensor* const* inputs, int32_t nbInputs,
                                    const char* equation) noexcept = 0;
    virtual IGridSampleLayer* addGridSample(ITensor& input, ITensor& grid) noexcept = 0;
    virtual INMSLayer* addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass,
                              DataType indicesType) noexcept = 0;
    virtual IReverseSequenceLayer* addReverseSequence(ITensor& input,
                                                      ITensor& sequenceLens) noexcept = 0;
    /// Scale and bias as the input, with 1 for dimensions that they do not vary along; for groups,
    /// 1 G 1 ... .
    virtual INormalizationLayer* addNormalization(ITensor& input, ITensor& scale, ITensor& bias,
                                                  uint32_t axesMask) noexcept = 0;
    /// The same; for groups, scale and bias are 1 C 1 ... .
    virtual INormalizationLayer* addNormalizationV2(ITensor& input, ITensor& scale, ITensor& bias,
                                                    uint32_t axesMask) noexcept = 0;
    virtual ICumulativeLayer* addCumulative(ITensor& input, ITensor& axis,
                                            CumulativeOperation operation, bool exclusive,
                                            bool reverse) noexcept = 0;
    virtual IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value,
                                       AttentionNormalizationOp normOp,
                                       CausalMaskKind causalKind) noexcept = 0;
    virtual IRotaryEmbeddingLayer* addRotaryEmbedding(ITensor& input, ITensor& cosCache,
                                                      ITensor& sinCache, bool interleaved,
                                                      int32_t rotaryEmbeddingDim) noexcept = 0;
    virtual IKVCacheUpdateLayer* addKVCacheUpdate(ITensor& cache, ITensor& update,
                                                  ITensor& writeIndices,
                                                  KVCacheMode cacheMode) noexcept = 0;
    virtual IMoELayer* addMoE(ITensor& hiddenStates, ITensor& selectedExpertsForTokens,
                              ITensor& scoresForSelectedExperts) noexcept = 0;
    /// \param reduceOp kNONE where the operation reduces nothing.
    /// \param root a rank of the communicator, which takes part; -1 where the operation has none.
    /// \param groups ranks of the communicator that take part, groupSize of them, in the order of
    /// the parts; nullptr and 0 for all. Groups of ranks do not overlap, and every rank of the
    /// communicator runs an engine with such a layer for its own group: NCCL splits the
    /// communicator when it runs first.
    virtual IDistCollectiveLayer* addDistCollective(ITensor& input,
                                                    CollectiveOperation distCollectiveOp,
                                                    ReduceOperation reduceOp, int64_t root,
                                                    int64_t* groups,
                                                    int64_t groupSize) noexcept = 0;
    virtual ISqueezeLayer* addSqueeze(ITensor& input, ITensor& axes) noexcept = 0;
    virtual IUnsqueezeLayer* addUnsqueeze(ITensor& input, ITensor& axes) noexcept = 0;
    /// A layer of the application; the plugin is cloned. Shape inputs are INT32 or INT64 tensors of
    /// 0 or 1 dimensions, whose values only the plugin's shape rule sees.
    virtual IPluginV3Layer* addPluginV3(ITensor* const* inputs, int32_t nbInputs,
                                        ITensor* const* shapeInputs, int32_t nbShapeInputs,
                                        IPluginV3& plugin) noexcept = 0;

    /// The builder that made it; valid until the application deletes the builder.
    virtual IBuilder& getBuilder() const noexcept = 0;
    virtual NetworkDefinitionCreationFlags getFlags() const noexcept = 0;
    virtual bool
    getFlag(NetworkDefinitionCreationFlag networkDefinitionCreationFlag) const noexcept = 0;
    /// Weights that kREFIT_INDIVIDUAL leaves open for refitting. Returns false for unknown names.
    virtual bool markWeightsRefittable(const char* name) noexcept = 0;
    virtual bool unmarkWeightsRefittable(const char* name) noexcept = 0;
    virtual bool areWeightsMarkedRefittable(const char* name) const noexcept = 0;

    // Older generations.

    TRT_DEPRECATED virtual IDynamicQuantizeLayer*
    addDynamicQuantize(ITensor& input, int32_t axis, int32_t blockSize, DataType outputType,
                       DataType scaleType) noexcept = 0;
    /// IPluginV2DynamicExt only; the plugin is cloned.
    TRT_DEPRECATED virtual IPluginV2Layer* addPluginV2(ITensor* const* inputs, int32_t nbInputs,
                                                       IPluginV2& plugin) noexcept = 0;
    TRT_DEPRECATED ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k,
                                       uint32_t reduceAxes) noexcept {
        return addTopK(input, op, k, reduceAxes, DataType::kINT32);
    }
    TRT_DEPRECATED INonZeroLayer* addNonZero(ITensor& input) noexcept {
        return addNonZero(input, DataType::kINT32);
    }
    TRT_DEPRECATED INMSLayer* addNMS(ITensor& boxes, ITensor& scores,
                                     ITensor& maxOutputBoxesPerClass) noexcept {
        return addNMS(boxes, scores, maxOutputBoxesPerClass, DataType::kINT32);
    }
    TRT_DEPRECATED IFillLayer* addFill(const Dims& dimensions, FillOperation op) noexcept {
        return addFill(dimensions, op, DataType::kFLOAT);
    }
    TRT_DEPRECATED IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale) noexcept {
        return addQuantize(input, scale, DataType::kINT8);
    }
    TRT_DEPRECATED IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale) noexcept {
        return addDequantize(input, scale, DataType::kFLOAT);
    }
    TRT_DEPRECATED IAttention* addAttention(ITensor& query, ITensor& key, ITensor& value,
                                            AttentionNormalizationOp normOp,
                                            bool isCausal) noexcept {
        return addAttentionV2(query, key, value, normOp,
                              isCausal ? CausalMaskKind::kUPPER_LEFT : CausalMaskKind::kNONE);
    }
    /// Always false.
    TRT_DEPRECATED bool hasImplicitBatchDimension() const noexcept { return false; }
};

} // namespace nvinfer1
