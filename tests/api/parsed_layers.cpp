// SPDX-License-Identifier: Apache-2.0
#include "api/parsed_layers.h"

#include "api/tensorrt/network/layer.h"

#include <map>

namespace ingot::test {

namespace {

using Type = nv::LayerType;

/// Uses the results of getters; reads memory, so that wrong addresses show.
class Use {
public:
    void operator()(const nv::Dims& d) {
        good = good && d.nbDims >= -1 && d.nbDims <= nv::Dims::MAX_DIMS;
        for (int32_t i = 0; i < d.nbDims; ++i) {
            sum += static_cast<double>(d.d[i]);
        }
    }
    void operator()(const nv::Weights& w) {
        good = good && w.count >= 0 && (w.count == 0 || w.values != nullptr);
        if (w.count > 0) {
            sum += static_cast<double>(*static_cast<const uint8_t*>(w.values));
        }
    }
    void operator()(const nv::Permutation& p) {
        for (int32_t i : p.order) {
            sum += i;
            good = good && i >= 0 && i < nv::Dims::MAX_DIMS;
        }
    }
    void operator()(const char* text) { good = good && text != nullptr && *text != '\0'; }
    template <class T>
    void operator()(T v) {
        if constexpr (std::is_enum_v<T>) {
            auto n = static_cast<int32_t>(v);
            good = good && n >= 0 && n < nv::EnumMax<T>();
            sum += n;
        } else {
            sum += static_cast<double>(v);
        }
    }
    bool good = true;
    double sum = 0;
};

// --- reading -------------------------------------------------------------------------------------

template <class T>
void read_windows(T& l, Use& use) {
    use(l.getPrePadding());
    use(l.getPostPadding());
    use(l.getPaddingMode());
    use(l.getPaddingNd());
    use(l.getStrideNd());
}

template <class T>
void read_kernels(T& l, Use& use) {
    read_windows(l, use);
    use(l.getNbOutputMaps());
    use(l.getNbGroups());
    use(l.getKernelWeights());
    use(l.getBiasWeights());
    use(l.getKernelSizeNd());
    use(l.getDilationNd());
}

void read(nv::IConvolutionLayer& l, Use& use) {
    read_kernels(l, use);
}
void read(nv::IDeconvolutionLayer& l, Use& use) {
    read_kernels(l, use);
}
void read(nv::IPoolingLayer& l, Use& use) {
    read_windows(l, use);
    use(l.getPoolingType());
    use(l.getWindowSizeNd());
    use(l.getBlendFactor());
    use(l.getAverageCountExcludesPadding());
}
void read(nv::ILRNLayer& l, Use& use) {
    use(l.getWindowSize());
    use(l.getAlpha());
    use(l.getBeta());
    use(l.getK());
}
void read(nv::IScaleLayer& l, Use& use) {
    use(l.getMode());
    use(l.getShift());
    use(l.getScale());
    use(l.getPower());
    use(l.getChannelAxis());
}
void read(nv::INormalizationLayer& l, Use& use) {
    use(l.getEpsilon());
    use(l.getAxes());
    use(l.getNbGroups());
    use(l.getComputePrecision());
    use(l.isV2());
}
void read(nv::IResizeLayer& l, Use& use) {
    std::array<float, nv::Dims::MAX_DIMS> scales{};
    int32_t count = l.getScales(nv::Dims::MAX_DIMS, scales.data());
    use(l.getOutputDimensions());
    use.good =
        use.good && (count > 0 || l.getOutputDimensions().nbDims > 0 || l.getInput(1) != nullptr);
    use(l.getResizeMode());
    use(l.getCoordinateTransformation());
    use(l.getSelectorForSinglePixel());
    use(l.getNearestRounding());
    use(l.getCubicCoeff());
    use(l.getExcludeOutside());
}
void read(nv::IGridSampleLayer& l, Use& use) {
    use(l.getInterpolationMode());
    use(l.getSampleMode());
    use(l.getAlignCorners());
}
void read(nv::IActivationLayer& l, Use& use) {
    use(l.getActivationType());
    use(l.getAlpha());
    use(l.getBeta());
}
void read(nv::IElementWiseLayer& l, Use& use) {
    use(l.getOperation());
    use.good = use.good && l.getInput(0) != nullptr && l.getInput(1) != nullptr;
}
void read(nv::IUnaryLayer& l, Use& use) {
    use(l.getOperation());
}
void read(nv::ICastLayer& l, Use& use) {
    use(l.getToType());
}
void read(nv::ISoftMaxLayer& l, Use& use) {
    use(l.getAxes());
    use.good = use.good && l.getAxes() != 0;
}
void read(nv::IReduceLayer& l, Use& use) {
    use(l.getOperation());
    use(l.getReduceAxes());
    use(l.getKeepDimensions());
    use.good = use.good && l.getReduceAxes() != 0;
}
void read(nv::ITopKLayer& l, Use& use) {
    use(l.getOperation());
    use(l.getK());
    use(l.getReduceAxes());
    use(l.getIndicesType());
}
void read(nv::IMatrixMultiplyLayer& l, Use& use) {
    use(l.getOperation(0));
    use(l.getOperation(1));
    use.good = use.good && l.getInput(0) != nullptr && l.getInput(1) != nullptr;
}
void read(nv::IEinsumLayer& l, Use& use) {
    use(l.getEquation());
}
void read(nv::ICumulativeLayer& l, Use& use) {
    use(l.getOperation());
    use(l.getExclusive());
    use(l.getReverse());
}
void read(nv::IConstantLayer& l, Use& use) {
    use(l.getDimensions());
    use(l.getWeights());
}
void read(nv::IConcatenationLayer& l, Use& use) {
    use(l.getAxis());
}
void read(nv::IShuffleLayer& l, Use& use) {
    use(l.getFirstTranspose());
    use(l.getReshapeDimensions());
    use(l.getSecondTranspose());
    use(l.getZeroIsPlaceholder());
}
void read(nv::IPaddingLayer& l, Use& use) {
    use(l.getPrePaddingNd());
    use(l.getPostPaddingNd());
}
void read(nv::ISliceLayer& l, Use& use) {
    use(l.getStart());
    use(l.getSize());
    use(l.getStride());
    use(l.getAxes());
    use(l.getMode());
    use.good = use.good && l.getStart().nbDims == l.getSize().nbDims;
}
void read(nv::IFillLayer& l, Use& use) {
    use(l.getDimensions());
    use(l.getOperation());
    use(l.getToType());
    use(l.getAlpha());
    use(l.getBeta());
    use(l.isAlphaBetaInt64());
}
void read(nv::IGatherLayer& l, Use& use) {
    use(l.getMode());
    use(l.getGatherAxis());
    use(l.getNbElementWiseDims());
    use.good = use.good && l.getInput(0) != nullptr && l.getInput(1) != nullptr;
}
void read(nv::IScatterLayer& l, Use& use) {
    use(l.getMode());
    use(l.getAxis());
}
void read(nv::IOneHotLayer& l, Use& use) {
    use(l.getAxis());
}
void read(nv::INonZeroLayer& l, Use& use) {
    use(l.getIndicesType());
}
void read(nv::IReverseSequenceLayer& l, Use& use) {
    use(l.getBatchAxis());
    use(l.getSequenceAxis());
}
template <class T>
void read_scales(T& l, Use& use) {
    use(l.getAxis());
    use(l.getBlockShape());
    use(l.getToType());
    use.good = use.good && l.getInput(1) != nullptr;
}
void read(nv::IQuantizeLayer& l, Use& use) {
    read_scales(l, use);
}
void read(nv::IDequantizeLayer& l, Use& use) {
    read_scales(l, use);
}
void read(nv::IRotaryEmbeddingLayer& l, Use& use) {
    use(l.getInterleaved());
    use(l.getRotaryEmbeddingDim());
}
void read(nv::IKVCacheUpdateLayer& l, Use& use) {
    use(l.getCacheMode());
}
/// Classes that have inputs and nothing else.
template <class T>
void read(T& l, Use& use) {
    use.good = use.good && l.getInput(0) != nullptr;
}

// --- setting -------------------------------------------------------------------------------------

template <class T>
bool touch(T&) {
    return false;
}
bool touch(nv::IConvolutionLayer& l) {
    l.setStrideNd(l.getStrideNd());
    return true;
}
bool touch(nv::IDeconvolutionLayer& l) {
    l.setStrideNd(l.getStrideNd());
    return true;
}
bool touch(nv::IPoolingLayer& l) {
    l.setStrideNd(l.getStrideNd());
    return true;
}
bool touch(nv::ILRNLayer& l) {
    l.setAlpha(l.getAlpha());
    return true;
}
bool touch(nv::IScaleLayer& l) {
    l.setMode(l.getMode());
    return true;
}
bool touch(nv::INormalizationLayer& l) {
    l.setEpsilon(l.getEpsilon());
    return true;
}
bool touch(nv::IResizeLayer& l) {
    l.setResizeMode(l.getResizeMode());
    return true;
}
bool touch(nv::IGridSampleLayer& l) {
    l.setAlignCorners(l.getAlignCorners());
    return true;
}
bool touch(nv::IActivationLayer& l) {
    l.setAlpha(l.getAlpha());
    return true;
}
bool touch(nv::IElementWiseLayer& l) {
    l.setOperation(l.getOperation());
    return true;
}
bool touch(nv::IUnaryLayer& l) {
    l.setOperation(l.getOperation());
    return true;
}
bool touch(nv::ICastLayer& l) {
    l.setToType(l.getToType());
    return true;
}
bool touch(nv::ISoftMaxLayer& l) {
    l.setAxes(l.getAxes());
    return true;
}
bool touch(nv::IReduceLayer& l) {
    l.setKeepDimensions(l.getKeepDimensions());
    return true;
}
bool touch(nv::ITopKLayer& l) {
    l.setOperation(l.getOperation());
    return true;
}
bool touch(nv::IMatrixMultiplyLayer& l) {
    l.setOperation(0, l.getOperation(0));
    return true;
}
bool touch(nv::IEinsumLayer& l) {
    return l.setEquation(l.getEquation());
}
bool touch(nv::ICumulativeLayer& l) {
    l.setReverse(l.getReverse());
    return true;
}
bool touch(nv::IConstantLayer& l) {
    l.setDimensions(l.getDimensions());
    return true;
}
bool touch(nv::IConcatenationLayer& l) {
    l.setAxis(l.getAxis());
    return true;
}
bool touch(nv::IShuffleLayer& l) {
    l.setZeroIsPlaceholder(l.getZeroIsPlaceholder());
    return true;
}
bool touch(nv::IPaddingLayer& l) {
    l.setPrePaddingNd(l.getPrePaddingNd());
    return true;
}
bool touch(nv::ISliceLayer& l) {
    l.setMode(l.getMode());
    return true;
}
bool touch(nv::IFillLayer& l) {
    l.setOperation(l.getOperation());
    return true;
}
bool touch(nv::IGatherLayer& l) {
    l.setMode(l.getMode());
    return true;
}
bool touch(nv::IScatterLayer& l) {
    l.setMode(l.getMode());
    return true;
}
bool touch(nv::IOneHotLayer& l) {
    l.setAxis(l.getAxis());
    return true;
}
bool touch(nv::INonZeroLayer& l) {
    return l.setIndicesType(l.getIndicesType());
}
bool touch(nv::IReverseSequenceLayer& l) {
    l.setBatchAxis(l.getBatchAxis());
    return true;
}
bool touch(nv::IQuantizeLayer& l) {
    l.setAxis(l.getAxis());
    return true;
}
bool touch(nv::IDequantizeLayer& l) {
    l.setAxis(l.getAxis());
    return true;
}
bool touch(nv::IRotaryEmbeddingLayer& l) {
    l.setInterleaved(l.getInterleaved());
    return true;
}
bool touch(nv::IKVCacheUpdateLayer& l) {
    return l.setCacheMode(l.getCacheMode());
}

// --- the classes ---------------------------------------------------------------------------------

struct Class {
    bool (*is)(nv::ILayer& l);
    void (*read)(nv::ILayer& l, Use& use);
    bool (*touch)(nv::ILayer& l);
};

template <class T>
Class row() {
    return {[](nv::ILayer& l) { return dynamic_cast<T*>(&l) != nullptr; },
            [](nv::ILayer& l, Use& use) { read(static_cast<T&>(l), use); },
            [](nv::ILayer& l) { return touch(static_cast<T&>(l)); }};
}

const std::map<Type, Class>& classes() {
    static const std::map<Type, Class> all = {
        {Type::kCONVOLUTION, row<nv::IConvolutionLayer>()},
        {Type::kCAST, row<nv::ICastLayer>()},
        {Type::kACTIVATION, row<nv::IActivationLayer>()},
        {Type::kPOOLING, row<nv::IPoolingLayer>()},
        {Type::kLRN, row<nv::ILRNLayer>()},
        {Type::kSCALE, row<nv::IScaleLayer>()},
        {Type::kSOFTMAX, row<nv::ISoftMaxLayer>()},
        {Type::kDECONVOLUTION, row<nv::IDeconvolutionLayer>()},
        {Type::kCONCATENATION, row<nv::IConcatenationLayer>()},
        {Type::kELEMENTWISE, row<nv::IElementWiseLayer>()},
        {Type::kUNARY, row<nv::IUnaryLayer>()},
        {Type::kPADDING, row<nv::IPaddingLayer>()},
        {Type::kSHUFFLE, row<nv::IShuffleLayer>()},
        {Type::kREDUCE, row<nv::IReduceLayer>()},
        {Type::kTOPK, row<nv::ITopKLayer>()},
        {Type::kGATHER, row<nv::IGatherLayer>()},
        {Type::kMATRIX_MULTIPLY, row<nv::IMatrixMultiplyLayer>()},
        {Type::kCONSTANT, row<nv::IConstantLayer>()},
        {Type::kIDENTITY, row<nv::IIdentityLayer>()},
        {Type::kSLICE, row<nv::ISliceLayer>()},
        {Type::kSHAPE, row<nv::IShapeLayer>()},
        {Type::kPARAMETRIC_RELU, row<nv::IParametricReLULayer>()},
        {Type::kRESIZE, row<nv::IResizeLayer>()},
        {Type::kSELECT, row<nv::ISelectLayer>()},
        {Type::kFILL, row<nv::IFillLayer>()},
        {Type::kQUANTIZE, row<nv::IQuantizeLayer>()},
        {Type::kDEQUANTIZE, row<nv::IDequantizeLayer>()},
        {Type::kSCATTER, row<nv::IScatterLayer>()},
        {Type::kEINSUM, row<nv::IEinsumLayer>()},
        {Type::kONE_HOT, row<nv::IOneHotLayer>()},
        {Type::kNON_ZERO, row<nv::INonZeroLayer>()},
        {Type::kGRID_SAMPLE, row<nv::IGridSampleLayer>()},
        {Type::kREVERSE_SEQUENCE, row<nv::IReverseSequenceLayer>()},
        {Type::kNORMALIZATION, row<nv::INormalizationLayer>()},
        {Type::kSQUEEZE, row<nv::ISqueezeLayer>()},
        {Type::kUNSQUEEZE, row<nv::IUnsqueezeLayer>()},
        {Type::kCUMULATIVE, row<nv::ICumulativeLayer>()},
        {Type::kROTARY_EMBEDDING, row<nv::IRotaryEmbeddingLayer>()},
        {Type::kKVCACHE_UPDATE, row<nv::IKVCacheUpdateLayer>()},
    };
    return all;
}

} // namespace

bool read_layer(nv::ILayer& layer) {
    auto it = classes().find(layer.getType());
    if (it == classes().end()) { // no class: a type that names none
        return layer.getType() == Type::kPLUGIN;
    }
    if (!it->second.is(layer)) {
        return false;
    }
    Use use;
    it->second.read(layer, use);
    return use.good && std::isfinite(use.sum);
}

bool touch_layer(nv::ILayer& layer) {
    auto it = classes().find(layer.getType());
    return it != classes().end() && it->second.is(layer) && it->second.touch(layer);
}

bool follows_node(nv::ILayer& layer) {
    return dynamic_cast<api::LayerBase&>(layer).parsed != nullptr;
}

} // namespace ingot::test
