// SPDX-License-Identifier: Apache-2.0
// IAttention: the settings of an attention, which is a pair of layers in the network.
#pragma once

#include "api/tensorrt/network/network.h"

namespace ingot::api {

class AttentionOutput;

class AttentionUnit final : public nv::IAttention {
public:
    explicit AttentionUnit(Network& network) : network_(network) {}
    virtual ~AttentionUnit() = default;

    bool setNormalizationOperation(nv::AttentionNormalizationOp op) noexcept override;
    nv::AttentionNormalizationOp getNormalizationOperation() const noexcept override {
        return normalization;
    }
    bool setMask(nv::ITensor& mask) noexcept override;
    nv::ITensor* getMask() const noexcept override { return input(Mask); }
    bool setCausalKind(nv::CausalMaskKind kind) noexcept override;
    nv::CausalMaskKind getCausalKind() const noexcept override { return causal; }
    bool setDecomposable(bool v) noexcept override;
    bool getDecomposable() const noexcept override { return decomposable_; }
    bool setInput(int32_t index, nv::ITensor& input) noexcept override;
    int32_t getNbInputs() const noexcept override { return 3; }
    nv::ITensor* getInput(int32_t index) const noexcept override;
    int32_t getNbOutputs() const noexcept override { return 1; }
    nv::ITensor* getOutput(int32_t index) const noexcept override;
    bool setName(const char* name) noexcept override;
    const char* getName() const noexcept override;
    bool setNormalizationQuantizeScale(nv::ITensor& tensor) noexcept override;
    nv::ITensor* getNormalizationQuantizeScale() const noexcept override { return input(Scale); }
    bool setNormalizationQuantizeToType(nv::DataType type) noexcept override;
    nv::DataType getNormalizationQuantizeToType() const noexcept override { return quantised; }
    bool setMetadata(const char* metadata) noexcept override;
    const char* getMetadata() const noexcept override;
    bool setNbRanks(int32_t nb_ranks) noexcept override;
    int32_t getNbRanks() const noexcept override;
    bool setQueryForm(nv::AttentionIOForm form) noexcept override;
    nv::AttentionIOForm getQueryForm() const noexcept override { return query_form; }
    bool setKeyValueForm(nv::AttentionIOForm form) noexcept override;
    nv::AttentionIOForm getKeyValueForm() const noexcept override { return key_value_form; }
    bool setQueryLengths(nv::ITensor* lengths) noexcept override;
    nv::ITensor* getQueryLengths() const noexcept override { return input(QueryLengths); }
    bool setKeyValueLengths(nv::ITensor* lengths) noexcept override;
    nv::ITensor* getKeyValueLengths() const noexcept override { return input(KeyValueLengths); }

    // Inputs of the computing layer.
    enum Input : size_t { Query, Key, KeyValue, Mask, Scale, QueryLengths, KeyValueLengths, Count };
    nv::AttentionNormalizationOp normalization = nv::AttentionNormalizationOp::kSOFTMAX;
    nv::CausalMaskKind causal = nv::CausalMaskKind::kNONE;
    nv::DataType quantised = nv::DataType::kFLOAT;
    nv::AttentionIOForm query_form = nv::AttentionIOForm::kPADDED_BHND;
    nv::AttentionIOForm key_value_form = nv::AttentionIOForm::kPADDED_BHND;
    LayerBase* begins = nullptr;   // the kATTENTION_INPUT layer
    LayerBase* computes = nullptr; // the kATTENTION_OUTPUT layer

private:
    nv::ITensor* input(size_t i) const noexcept { return computes->input(static_cast<int32_t>(i)); }
    bool set(std::string_view method, size_t i, nv::ITensor* tensor) noexcept;
    template <class F>
    bool change(std::string_view method, const F& f) noexcept {
        return network_.report().guard(method, false, [&] {
            f();
            network_.changed();
            return true;
        });
    }
    Network& network_;
    bool decomposable_ = false;
};

} // namespace ingot::api
