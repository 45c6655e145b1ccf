// SPDX-License-Identifier: Apache-2.0
// ITensor and ILayer: the nodes and edges of a network. Included by NvInfer.h.
#pragma once

#include "NvInferLegacyDims.h"
#include "NvInferRuntime.h"

namespace nvinfer1 {

enum class LayerType : int32_t; // network.h has the enumerators

/// A value in a network: an input, or the output of a layer.
///
/// Lifetime: belongs to the network. Thread safety: as the network.
class ITensor : public INoCopy {
public:
    /// Inputs and outputs of the engine are known by it, so it must be unique there. Default: made
    /// from the layer's name.
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;
    /// Changes the shape of a network input; other tensors refuse it with an error.
    virtual void setDimensions(const Dims& dimensions) noexcept = 0;
    /// -1 for sizes known only at run time; nbDims == -1 when the layer's inputs are wrong.
    virtual Dims getDimensions() const noexcept = 0;
    virtual DataType getType() const noexcept = 0;
    virtual bool isNetworkInput() const noexcept = 0;
    virtual bool isNetworkOutput() const noexcept = 0;
    /// Formats in which an input or output may lie in memory; bits of TensorFormat. Default: all.
    /// The engine takes kLINEAR where it is among them, else the first of kHWC, kHWC8, kHWC16,
    /// kDHWC, kDHWC8, kCHW2, kCHW4, kCHW16, kCHW32, kCDHW32 that is and that fits type and rank of
    /// the tensor; where none fits, the build fails. Other tensors are not concerned.
    virtual void setAllowedFormats(TensorFormats formats) noexcept = 0;
    virtual TensorFormats getAllowedFormats() const noexcept = 0;
    /// Whether its values are used as shapes, or marked so. Known for sure when the network is
    /// complete.
    virtual bool isShapeTensor() const noexcept = 0;
    /// Whether its values are used in other ways.
    virtual bool isExecutionTensor() const noexcept = 0;
    /// Names a size of a network input: sizes of the same name are equal at run time.
    virtual void setDimensionName(int32_t index, const char* name) noexcept = 0;
    /// nullptr when it has none.
    virtual const char* getDimensionName(int32_t index) const noexcept = 0;

    /// Where an input or output lies: kHOST for shapes.
    virtual TensorLocation getLocation() const noexcept = 0;

    // Older generations.

    /// Changes the type in which a network input or output is passed. Where the network is not
    /// strongly typed, layers see an input that was kFLOAT, and is kHALF, kBF16 or kINT8 now, as
    /// kFLOAT. A tensor that is kINT8 with a dynamic range holds multiples of range / 127.
    TRT_DEPRECATED virtual void setType(DataType type) noexcept = 0;
    /// Range for INT8 without calibration: both signs of the larger magnitude. Returns false unless
    /// min <= max.
    TRT_DEPRECATED virtual bool setDynamicRange(float min, float max) noexcept = 0;
    TRT_DEPRECATED virtual bool dynamicRangeIsSet() const noexcept = 0;
    TRT_DEPRECATED virtual void resetDynamicRange() noexcept = 0;
    /// NaN when no range is set.
    TRT_DEPRECATED virtual float getDynamicRangeMin() const noexcept = 0;
    TRT_DEPRECATED virtual float getDynamicRangeMax() const noexcept = 0;
    /// No effect: the location follows from use.
    TRT_DEPRECATED void setLocation(TensorLocation location) noexcept {
        static_cast<void>(location);
    }
    /// No effect: there is no implicit batch dimension.
    TRT_DEPRECATED void setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept {
        static_cast<void>(broadcastAcrossBatch);
    }
    TRT_DEPRECATED bool getBroadcastAcrossBatch() const noexcept { return false; }

protected:
    ~ITensor() = default;
};

/// An operation in a network.
///
/// Lifetime: belongs to the network. Thread safety: as the network.
/// Settings are checked when outputs are asked for their shape or type, and at build; the message
/// names the layer.
class ILayer : public INoCopy {
public:
    virtual LayerType getType() const noexcept = 0;
    /// For messages, profiles and the inspector. Default: made from type and number.
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;
    virtual int32_t getNbInputs() const noexcept = 0;
    /// nullptr for a bad index, or an optional input that is not set.
    virtual ITensor* getInput(int32_t index) const noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
    /// nullptr for a bad index.
    virtual ITensor* getOutput(int32_t index) const noexcept = 0;
    /// Replaces an input, or adds an optional one; each class says which there are.
    virtual void setInput(int32_t index, ITensor& tensor) noexcept = 0;
    virtual DataType getOutputType(int32_t index) const noexcept = 0;
    /// Text that the inspector shows with the layer. Default "".
    virtual void setMetadata(const char* metadata) noexcept = 0;
    virtual const char* getMetadata() const noexcept = 0;
    /// How many GPUs take part in the layer. Default 1. Returns false for less than 1. More than
    /// one do in collectives only (IDistCollectiveLayer): the build refuses it for other layers.
    virtual bool setNbRanks(int32_t nbRanks) noexcept = 0;
    virtual int32_t getNbRanks() const noexcept = 0;

    // Older generations: types in a network that is not strongly typed.

    /// Computes in this type, where kOBEY_PRECISION_CONSTRAINTS or kPREFER_PRECISION_CONSTRAINTS is
    /// set: kFLOAT keeps the layer out of what kFP16, kBF16 and kINT8 do; narrower types need their
    /// flag. Refused in strongly typed networks.
    TRT_DEPRECATED virtual void setPrecision(DataType dataType) noexcept = 0;
    TRT_DEPRECATED virtual DataType getPrecision() const noexcept = 0;
    TRT_DEPRECATED virtual bool precisionIsSet() const noexcept = 0;
    TRT_DEPRECATED virtual void resetPrecision() noexcept = 0;
    /// Casts an output to this type. With these flags and no precision set, kFLOAT means that the
    /// layer computes in it too.
    TRT_DEPRECATED virtual void setOutputType(int32_t index, DataType dataType) noexcept = 0;
    TRT_DEPRECATED virtual bool outputTypeIsSet(int32_t index) const noexcept = 0;
    TRT_DEPRECATED virtual void resetOutputType(int32_t index) noexcept = 0;

protected:
    ~ILayer() = default;
};

} // namespace nvinfer1
