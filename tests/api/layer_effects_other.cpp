// SPDX-License-Identifier: Apache-2.0
// Settings of quantisation, transformers, loops, and of every layer and tensor.
#include "api/layer_effects.h"

namespace ingot::test {

namespace {

nv::ITensor& heads(OneLayer& n, const char* name) {
    return n.input(name, {2, 4, 3, 16});
}

nv::ITensor& column_scale(OneLayer& n) {
    return n.constant({4});
}

auto* quantize(OneLayer& n) {
    auto* l = n.net().addQuantize(n.input("x", {4, 4}), column_scale(n), nv::DataType::kINT8);
    l->setAxis(1);
    return l;
}

auto* dequantize(OneLayer& n) {
    auto* l = n.net().addDequantize(n.input("x", {4, 4}, nv::DataType::kINT8), column_scale(n),
                                    nv::DataType::kFLOAT);
    l->setAxis(1);
    return l;
}

auto* dynamic(OneLayer& n) {
    return n.net().addDynamicQuantizeV2(n.input("x", {4, 32}), nv::Dims2(1, 16), nv::DataType::kFP4,
                                        nv::DataType::kFP8);
}

auto* rotary(OneLayer& n) {
    nv::ITensor& angles = n.input("angles", {2, 3, 8});
    return n.net().addRotaryEmbedding(heads(n, "x"), angles, angles, false, 0);
}

auto* attention(OneLayer& n) {
    return n.net().addAttentionV2(heads(n, "q"), heads(n, "k"), heads(n, "v"),
                                  nv::AttentionNormalizationOp::kSOFTMAX,
                                  nv::CausalMaskKind::kNONE);
}

/// A setting of an attention, whose results are its layers'.
LayerSetting of_attention(const char* setter,
                          const std::function<void(OneLayer&, nv::IAttention&)>& change) {
    return {setter, [change](OneLayer& n) -> std::function<void()> {
                nv::IAttention* a = attention(n);
                n.net().markOutput(*a->getOutput(0));
                return [a, change, &n] { change(n, *a); };
            }};
}

/// A loop over the rows of x that sums them.
struct Rows {
    nv::ILoop* loop;
    nv::IIteratorLayer* each;
    nv::ILoopOutputLayer* all;
    explicit Rows(OneLayer& n) : loop(n.net().addLoop()) {
        nv::ITensor& x = n.input("x", {3, 3});
        loop->addTripLimit(n.ints({3}, true), nv::TripLimit::kCOUNT);
        each = loop->addIterator(x);
        all = loop->addLoopOutput(*each->getOutput(0), nv::LoopOutput::kCONCATENATE, 0);
        all->setInput(1, n.ints({3}, true));
        n.mark(*all);
    }
};

LayerSetting of_loop(const char* setter, const std::function<void(Rows&)>& change) {
    return {setter, [change](OneLayer& n) -> std::function<void()> {
                auto rows = std::make_shared<Rows>(n);
                return [rows, change] { change(*rows); };
            }};
}

/// A setting of the input of a product.
LayerSetting of_tensor(const char* setter, const std::function<void(nv::ITensor&)>& change) {
    return {setter, [change](OneLayer& n) -> std::function<void()> {
                nv::ITensor& x = n.input("x", {4, 4});
                n.mark(*n.net().addUnary(x, nv::UnaryOperation::kEXP));
                return [&x, change] { change(x); };
            }};
}

/// A setting that every layer has.
LayerSetting of_layer(const char* setter,
                      const std::function<void(OneLayer&, nv::ILayer&)>& change) {
    return {setter, [change](OneLayer& n) -> std::function<void()> {
                nv::ILayer* l = n.net().addUnary(n.input("x", {4, 4}), nv::UnaryOperation::kEXP);
                n.mark(*l);
                return [l, change, &n] { change(n, *l); };
            }};
}

auto* cache(OneLayer& n) {
    return n.net().addKVCacheUpdate(n.input("cache", {2, 2, 4, 8}), n.input("update", {2, 2, 1, 8}),
                                    n.ints({0, 0}), nv::KVCacheMode::kLINEAR);
}

auto* packed_cache(OneLayer& n) {
    auto* l = n.net().addKVCacheUpdate(n.input("cache", {2, 2, 4, 8}), n.input("update", {3, 2, 8}),
                                       n.ints({0, 0}), nv::KVCacheMode::kLINEAR);
    l->setUpdateForm(nv::AttentionIOForm::kPACKED_NHD);
    l->setUpdateLengths(&n.ints({0, 1, 3}));
    return l;
}

nv::IMoELayer* experts(OneLayer& n) {
    nv::ITensor& which = n.input("which", {1, 2, 1}, nv::DataType::kINT32);
    auto* l = n.net().addMoE(n.input("x", {1, 2, 3}), which, n.constant({1, 2, 1}));
    l->setGatedWeights(n.constant({2, 3, 4}), n.constant({2, 3, 4}, 2), n.constant({2, 4, 3}),
                       nv::MoEActType::kSILU);
    return l;
}

nv::IMoELayer* narrow_experts(OneLayer& n) {
    nv::IMoELayer* l = experts(n);
    l->setQuantizationDynamicDblQ(n.constant({1}), nv::DataType::kFP8, nv::Dims4(1, 1, 1, 2),
                                  nv::DataType::kFP8);
    return l;
}

nv::IIfConditional* conditional(OneLayer& n) {
    nv::IIfConditional* c = n.net().addIfConditional();
    c->setCondition(n.input("p", {}, nv::DataType::kBOOL));
    nv::ITensor& x = *c->addInput(n.input("x", {4}))->getOutput(0);
    n.mark(*c->addOutput(*n.net().addUnary(x, nv::UnaryOperation::kEXP)->getOutput(0),
                         *n.net().addUnary(x, nv::UnaryOperation::kABS)->getOutput(0)));
    return c;
}

} // namespace

std::vector<LayerSetting> other_settings() {
    return {
        SETTING(IQuantizeLayer, Axis, quantize(n), 0),
        SETTING(IQuantizeLayer, ToType, quantize(n), nv::DataType::kFP8),
        SETTING(IQuantizeLayer, BlockShape, quantize(n), nv::Dims2(1, 2)),
        SETTING(IDequantizeLayer, Axis, dequantize(n), 0),
        SETTING(IDequantizeLayer, ToType, dequantize(n), nv::DataType::kHALF),
        SETTING(IDequantizeLayer, BlockShape, dequantize(n), nv::Dims2(1, 2)),
        SETTING(IDynamicQuantizeLayer, ToType, dynamic(n), nv::DataType::kFP8),
        SETTING(IDynamicQuantizeLayer, ScaleType, dynamic(n), nv::DataType::kFLOAT),
        SETTING(IDynamicQuantizeLayer, BlockShape, dynamic(n), nv::Dims2(1, 8)),
        SETTING(IDynamicQuantizeLayer, Axis, dynamic(n), 0),
        SETTING(IDynamicQuantizeLayer, BlockSize, dynamic(n), 2),
        SETTING(IRotaryEmbeddingLayer, Interleaved, rotary(n), true),
        SETTING(IRotaryEmbeddingLayer, RotaryEmbeddingDim, rotary(n), 8),
        of_attention("IAttention::setNormalizationOperation",
                     [](OneLayer&, nv::IAttention& a) {
                         a.setNormalizationOperation(nv::AttentionNormalizationOp::kNONE);
                     }),
        of_attention("IAttention::setCausal",
                     [](OneLayer&, nv::IAttention& a) { a.setCausal(true); }),
        of_attention("IAttention::setCausalKind",
                     [](OneLayer&, nv::IAttention& a) {
                         a.setCausalKind(nv::CausalMaskKind::kLOWER_RIGHT);
                     }),
        of_attention("IAttention::setMask",
                     [](OneLayer& n, nv::IAttention& a) {
                         a.setMask(n.constant({2, 4, 3, 3}));
                     }),
        of_attention("IAttention::setInput",
                     [](OneLayer& n, nv::IAttention& a) { a.setInput(1, heads(n, "other")); }),
        of_attention("IAttention::setName",
                     [](OneLayer&, nv::IAttention& a) { a.setName("named"); }),
        of_attention("IAttention::setMetadata",
                     [](OneLayer&, nv::IAttention& a) { a.setMetadata("told"); }),
        of_attention("IAttention::setNbRanks",
                     [](OneLayer&, nv::IAttention& a) { a.setNbRanks(2); }),
        of_attention(
            "IAttention::setQueryForm",
            [](OneLayer&, nv::IAttention& a) { a.setQueryForm(nv::AttentionIOForm::kPACKED_NHD); }),
        of_attention("IAttention::setKeyValueForm",
                     [](OneLayer&, nv::IAttention& a) {
                         a.setKeyValueForm(nv::AttentionIOForm::kPACKED_NHD);
                     }),
        of_attention("IAttention::setQueryLengths",
                     [](OneLayer& n, nv::IAttention& a) {
                         a.setQueryLengths(&n.ints({3, 2}));
                     }),
        of_attention("IAttention::setKeyValueLengths",
                     [](OneLayer& n, nv::IAttention& a) {
                         a.setKeyValueLengths(&n.ints({3, 2}));
                     }),
        of_attention("IAttention::setNormalizationQuantizeToType",
                     [](OneLayer& n, nv::IAttention& a) {
                         a.setNormalizationQuantizeScale(n.constant({1}));
                         a.setNormalizationQuantizeToType(nv::DataType::kFP8);
                     }),
        of_attention("IAttention::setNormalizationQuantizeScale",
                     [](OneLayer& n, nv::IAttention& a) {
                         a.setNormalizationQuantizeScale(n.constant({1}));
                     }),
        of_attention("IAttention::setDecomposable",
                     [](OneLayer&, nv::IAttention& a) { a.setDecomposable(true); }),
        SETTING(IKVCacheUpdateLayer, UpdateForm, cache(n), nv::AttentionIOForm::kPACKED_NHD),
        SETTING(IKVCacheUpdateLayer, UpdateLengths, packed_cache(n), &n.ints({0, 2, 2})),
        SETTING(IMoELayer, GatedWeights, experts(n), n.constant({2, 3, 4}, 9),
                n.constant({2, 3, 4}, 3), n.constant({2, 4, 3}, 5), nv::MoEActType::kSILU),
        SETTING(IMoELayer, GatedBiases, experts(n), n.constant({2, 4}), n.constant({2, 4}),
                n.constant({2, 3})),
        SETTING(IMoELayer, ActivationType, experts(n), nv::MoEActType::kNONE),
        SETTING(IMoELayer, QuantizationStatic, experts(n), n.constant({1}), nv::DataType::kFP8),
        SETTING(IMoELayer, QuantizationDynamicDblQ, experts(n), n.constant({1}), nv::DataType::kFP8,
                nv::Dims4(1, 1, 1, 2), nv::DataType::kFP8),
        SETTING(IMoELayer, QuantizationToType, narrow_experts(n), nv::DataType::kFP4),
        SETTING(IMoELayer, QuantizationBlockShape, narrow_experts(n), nv::Dims4(1, 1, 1, 1)),
        SETTING(IMoELayer, DynQOutputScaleType, narrow_experts(n), nv::DataType::kHALF),
        SETTING(IMoELayer, SwigluParams, experts(n), 0.5F, 1.75F, 1),
        SETTING(IMoELayer, SwigluParamLimit, experts(n), 0.5F),
        SETTING(IMoELayer, SwigluParamAlpha, experts(n), 1.75F),
        SETTING(IMoELayer, SwigluParamBeta, experts(n), 1),
        {"IIfConditional::setCondition",
         [](OneLayer& n) -> std::function<void()> {
             nv::IIfConditional* c = conditional(n);
             nv::ITensor& other = n.input("q", {}, nv::DataType::kBOOL);
             return [c, &other] { c->setCondition(other); };
         }},
        {"IIfConditional::setName",
         [](OneLayer& n) -> std::function<void()> {
             nv::IIfConditional* c = conditional(n);
             return [c] { c->setName("named"); };
         }},
        of_loop("IIteratorLayer::setAxis", [](Rows& r) { r.each->setAxis(1); }),
        of_loop("IIteratorLayer::setReverse", [](Rows& r) { r.each->setReverse(true); }),
        of_loop("ILoopOutputLayer::setAxis", [](Rows& r) { r.all->setAxis(1); }),
        of_loop("ILoop::setName", [](Rows& r) { r.loop->setName("named"); }),
        of_layer("ILayer::setInput",
                 [](OneLayer& n, nv::ILayer& l) {
                     l.setInput(0, n.input("other", {2, 2}));
                 }),
        of_layer("ILayer::setName", [](OneLayer&, nv::ILayer& l) { l.setName("named"); }),
        of_layer("ILayer::setMetadata", [](OneLayer&, nv::ILayer& l) { l.setMetadata("told"); }),
        of_layer("ILayer::setNbRanks", [](OneLayer&, nv::ILayer& l) { l.setNbRanks(2); }),
        of_layer("ILayer::setPrecision",
                 [](OneLayer&, nv::ILayer& l) { l.setPrecision(nv::DataType::kHALF); }),
        of_layer("ILayer::setOutputType",
                 [](OneLayer&, nv::ILayer& l) { l.setOutputType(0, nv::DataType::kHALF); }),
        of_tensor("ITensor::setName", [](nv::ITensor& x) { x.setName("named"); }),
        of_tensor("ITensor::setDimensions",
                  [](nv::ITensor& x) {
                      x.setDimensions(dims({2, 2}));
                  }),
        of_tensor("ITensor::setType", [](nv::ITensor& x) { x.setType(nv::DataType::kHALF); }),
        of_tensor("ITensor::setAllowedFormats",
                  [](nv::ITensor& x) {
                      x.setAllowedFormats(1U << static_cast<uint32_t>(nv::TensorFormat::kCHW32));
                  }),
        {"ITensor::setDynamicRange",
         [](OneLayer& n) -> std::function<void()> {
             nv::ITensor& x = n.input("x", {4, 4});
             nv::ILayer* l = n.net().addMatrixMultiply(
                 x, nv::MatrixOperation::kNONE, n.constant({4, 4}), nv::MatrixOperation::kNONE);
             n.mark(*l);
             l->getOutput(0)->setDynamicRange(-9, 9);
             x.setDynamicRange(-1, 1);
             n.scene.config->setFlag(nv::BuilderFlag::kINT8);
             return [&x] { x.setDynamicRange(-2, 2); };
         }},
        {"ITensor::setDimensionName",
         [](OneLayer& n) -> std::function<void()> {
             nv::ITensor& x = n.input("x", {-1, 4});
             n.mark(*n.net().addUnary(x, nv::UnaryOperation::kEXP));
             nv::IOptimizationProfile* p = n.scene.builder->createOptimizationProfile();
             for (auto which : {nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT,
                                nv::OptProfileSelector::kMAX}) {
                 p->setDimensions("x", which,
                                  dims({which == nv::OptProfileSelector::kMIN ? 1 : 2, 4}));
             }
             n.scene.config->addOptimizationProfile(p);
             return [&x] { x.setDimensionName(0, "batch"); };
         }},
    };
}

} // namespace ingot::test
