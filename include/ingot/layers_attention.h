// SPDX-License-Identifier: Apache-2.0
// Layers of transformers: attention, rotary embedding, key/value cache, experts, collectives.
// Included by NvInfer.h.
//
// Sizes: B batch, H heads, S tokens, D size of a head.
#pragma once

#include "ingot/layers_math.h"
#include "ingot/tensor.h"

namespace nvinfer1 {

class IAttention;

enum class AttentionNormalizationOp : int32_t {
    kNONE = 0,
    kSOFTMAX = 1,
};
INGOT_ENUM_MAX(AttentionNormalizationOp, 2)

/// Which keys j a query i may see, of T keys and S queries.
enum class CausalMaskKind : int32_t {
    kNONE = 0,        ///< All
    kUPPER_LEFT = 1,  ///< j <= i
    kLOWER_RIGHT = 2, ///< j <= i + T - S
};
INGOT_ENUM_MAX(CausalMaskKind, 3)

enum class AttentionIOForm : int32_t {
    kPADDED_BHND = 0, ///< B H S D
    kPACKED_NHD = 1,  ///< The tokens of all sequences one after another, H, D
};
INGOT_ENUM_MAX(AttentionIOForm, 2)

/// Base of the layers that an IAttention shows in INetworkDefinition::getLayer().
class IAttentionBoundaryLayer : public ILayer {
public:
    virtual IAttention* getAttention() const noexcept = 0;

protected:
    ~IAttentionBoundaryLayer() = default;
};

/// The inputs of an IAttention: query, key, value, then those that are set by its methods.
class IAttentionInputLayer : public IAttentionBoundaryLayer {
protected:
    ~IAttentionInputLayer() = default;
};

/// The output of an IAttention.
class IAttentionOutputLayer : public IAttentionBoundaryLayer {
protected:
    ~IAttentionOutputLayer() = default;
};

/// normalisation(Q K^T + mask) V. There is no scale: fold it into Q. Heads of Q are a multiple of
/// those of K and V. The output has the shape of Q.
///
/// Lifetime: belongs to the network. Setters return false for values that cannot be.
class IAttention : public INoCopy {
public:
    /// Default kSOFTMAX.
    virtual bool setNormalizationOperation(AttentionNormalizationOp op) noexcept = 0;
    virtual AttentionNormalizationOp getNormalizationOperation() const noexcept = 0;
    /// B H S T, broadcast: BOOL, true where a query may see a key, or a number that is added. Not
    /// together with a causal kind or a packed form.
    virtual bool setMask(ITensor& mask) noexcept = 0;
    /// nullptr when there is none.
    virtual ITensor* getMask() const noexcept = 0;
    /// Default kNONE.
    virtual bool setCausalKind(CausalMaskKind kind) noexcept = 0;
    virtual CausalMaskKind getCausalKind() const noexcept = 0;
    /// A wish for one kernel (false, the default) that is kept where a kernel can: engines run on
    /// every device, so no build fails for it.
    virtual bool setDecomposable(bool decomposable) noexcept = 0;
    virtual bool getDecomposable() const noexcept = 0;
    /// 0 query, 1 key, 2 value.
    virtual bool setInput(int32_t index, ITensor& input) noexcept = 0;
    virtual int32_t getNbInputs() const noexcept = 0;
    virtual ITensor* getInput(int32_t index) const noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
    virtual ITensor* getOutput(int32_t index) const noexcept = 0;
    virtual bool setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;
    /// Scale by which the normalised scores are quantised: a scalar or vector.
    virtual bool setNormalizationQuantizeScale(ITensor& tensor) noexcept = 0;
    virtual ITensor* getNormalizationQuantizeScale() const noexcept = 0;
    /// kFP8 or kINT8. Default kFLOAT: not quantised.
    virtual bool setNormalizationQuantizeToType(DataType type) noexcept = 0;
    virtual DataType getNormalizationQuantizeToType() const noexcept = 0;
    virtual bool setMetadata(const char* metadata) noexcept = 0;
    virtual const char* getMetadata() const noexcept = 0;
    /// \see ILayer::setNbRanks
    virtual bool setNbRanks(int32_t nbRanks) noexcept = 0;
    virtual int32_t getNbRanks() const noexcept = 0;
    /// Default kPADDED_BHND.
    virtual bool setQueryForm(AttentionIOForm form) noexcept = 0;
    virtual AttentionIOForm getQueryForm() const noexcept = 0;
    /// Default kPADDED_BHND.
    virtual bool setKeyValueForm(AttentionIOForm form) noexcept = 0;
    virtual AttentionIOForm getKeyValueForm() const noexcept = 0;
    /// For kPACKED_NHD: INT32, B + 1, where each sequence starts, from 0 to the number of tokens.
    /// nullptr takes it away.
    virtual bool setQueryLengths(ITensor* lengths) noexcept = 0;
    virtual ITensor* getQueryLengths() const noexcept = 0;
    /// For kPACKED_NHD as setQueryLengths(); for kPADDED_BHND, optional: INT32, B, how many tokens
    /// each sequence has.
    virtual bool setKeyValueLengths(ITensor* lengths) noexcept = 0;
    virtual ITensor* getKeyValueLengths() const noexcept = 0;

    // Older generations.

    TRT_DEPRECATED bool setCausal(bool isCausal) noexcept {
        return setCausalKind(isCausal ? CausalMaskKind::kUPPER_LEFT : CausalMaskKind::kNONE);
    }
    TRT_DEPRECATED bool getCausal() const noexcept {
        return getCausalKind() != CausalMaskKind::kNONE;
    }

protected:
    ~IAttention() = default;
};

/// Rotates pairs of the last dimension by position. Inputs: tensor B H S D, cosines and sines B S
/// R/2; 3, optional, positions B S, and then cosines and sines are positions x R/2.
class IRotaryEmbeddingLayer : public ILayer {
public:
    /// True: pairs are neighbours; false (the default): halves.
    virtual void setInterleaved(bool interleaved) noexcept = 0;
    virtual bool getInterleaved() const noexcept = 0;
    /// R, how much of D is rotated; even. 0 (the default): all. Returns false for others.
    virtual bool setRotaryEmbeddingDim(int32_t rotaryEmbeddingDim) noexcept = 0;
    virtual int32_t getRotaryEmbeddingDim() const noexcept = 0;

protected:
    ~IRotaryEmbeddingLayer() = default;
};

enum class KVCacheMode : int32_t {
    kLINEAR = 0,
};
INGOT_ENUM_MAX(KVCacheMode, 1)

/// Writes tokens into a cache in place: cache[b, :, at[b] + s, :] = update[b, :, s, :]. Places
/// beyond the cache are an error of the run; of a packed update they are left out. Inputs: cache B
/// H M D, update B H S D, at (INT32 or INT64, B). As a network output it lies where the cache, a
/// network input, lies: give both one address.
class IKVCacheUpdateLayer : public ILayer {
public:
    virtual bool setCacheMode(KVCacheMode cacheMode) noexcept = 0;
    virtual KVCacheMode getCacheMode() const noexcept = 0;
    /// Default kPADDED_BHND.
    virtual bool setUpdateForm(AttentionIOForm form) noexcept = 0;
    virtual AttentionIOForm getUpdateForm() const noexcept = 0;
    /// For kPACKED_NHD. \see IAttention::setQueryLengths
    virtual bool setUpdateLengths(ITensor* lengths) noexcept = 0;
    virtual ITensor* getUpdateLengths() const noexcept = 0;

protected:
    ~IKVCacheUpdateLayer() = default;
};

enum class MoEActType : int32_t {
    kNONE = 0,
    kSILU = 1,
};
INGOT_ENUM_MAX(MoEActType, 2)

/// Mixture of experts: the sum, over the experts chosen for a token, of score * down(up(x) *
/// act(gate(x))). Inputs: hidden states B S C, indices of experts B S K, scores B S K.
class IMoELayer : public ILayer {
public:
    /// Gate and up: experts x C x I; down: experts x I x C.
    virtual void setGatedWeights(ITensor& fcGateWeights, ITensor& fcUpWeights,
                                 ITensor& fcDownWeights, MoEActType activationType) noexcept = 0;
    /// Gate and up: experts x I; down: experts x C. All or none.
    virtual void setGatedBiases(ITensor& fcGateBiases, ITensor& fcUpBiases,
                                ITensor& fcDownBiases) noexcept = 0;
    virtual void setActivationType(MoEActType activationType) noexcept = 0;
    virtual MoEActType getActivationType() const noexcept = 0;
    /// Quantises what goes into `down` by a given scale.
    virtual void setQuantizationStatic(ITensor& fcDownActivationScale,
                                       DataType dataType) noexcept = 0;
    /// Quantises it by computed block scales, which are quantised too.
    virtual void setQuantizationDynamicDblQ(ITensor& fcDownActivationDblQScale, DataType dataType,
                                            const Dims& blockShape,
                                            DataType dynQOutputScaleType) noexcept = 0;
    /// kFP8 or kFP4. Default kFLOAT: not quantised.
    virtual void setQuantizationToType(DataType type) noexcept = 0;
    virtual DataType getQuantizationToType() const noexcept = 0;
    /// Blocks of B, S, K, I: 1 for all but I.
    virtual void setQuantizationBlockShape(const Dims& blockShape) noexcept = 0;
    virtual Dims getQuantizationBlockShape() const noexcept = 0;
    virtual void setDynQOutputScaleType(DataType type) noexcept = 0;
    virtual DataType getDynQOutputScaleType() const noexcept = 0;
    /// min(g, limit) * sigmoid(alpha g) * (clamp(u, -limit, limit) + beta). Defaults: infinity, 1,
    /// 0.
    virtual void setSwigluParams(float limit, float alpha, float beta) noexcept = 0;
    virtual void setSwigluParamLimit(float limit) noexcept = 0;
    virtual float getSwigluParamLimit() const noexcept = 0;
    virtual void setSwigluParamAlpha(float alpha) noexcept = 0;
    virtual float getSwigluParamAlpha() const noexcept = 0;
    virtual void setSwigluParamBeta(float beta) noexcept = 0;
    virtual float getSwigluParamBeta() const noexcept = 0;

protected:
    ~IMoELayer() = default;
};

enum class CollectiveOperation : int32_t {
    kALL_REDUCE = 0,
    kALL_GATHER = 1,
    kBROADCAST = 2,
    kREDUCE = 3,
    kREDUCE_SCATTER = 4,
    kALL_TO_ALL = 5,
    kGATHER = 6,
    kSCATTER = 7,
};
INGOT_ENUM_MAX(CollectiveOperation, 8)

/// Exchanges data between GPUs, each a rank of an NCCL communicator that runs an engine with this
/// layer (IExecutionContext::setCommunicator()). ILayer::setNbRanks() says how many take part; with
/// 1, the default, the output is the input. By operation, the output is
///
///   kALL_REDUCE      the reduction of all inputs, element by element
///   kREDUCE          the same at the root, zeros elsewhere
///   kREDUCE_SCATTER  the reduction, cut along axis 0: the part of this rank
///   kBROADCAST       the root's input
///   kALL_GATHER      all inputs, one after another along axis 0
///   kGATHER          the same at the root, zeros elsewhere
///   kSCATTER         the root's input, cut along axis 0: the part of this rank
///   kALL_TO_ALL      cut along axis 0, part i goes to rank i; part j of the output is rank j's
///
/// Reductions take floats of 16 bits and more, INT8, UINT8, INT32 and INT64, and BOOL where they
/// are kMIN (all) or kMAX (any); the other operations take every type. It runs on GPUs only.
class IDistCollectiveLayer : public ILayer {
protected:
    ~IDistCollectiveLayer() = default;
};

} // namespace nvinfer1
