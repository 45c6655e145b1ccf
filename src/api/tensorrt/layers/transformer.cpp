// SPDX-License-Identifier: Apache-2.0
// Rotary embedding, key/value cache, mixture of experts.
#include "api/tensorrt/layers/blocks.h"
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/packed.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

#include <limits>

namespace ingot::api {

namespace {

class RotaryEmbedding final : public Layer<nv::IRotaryEmbeddingLayer> {
public:
    RotaryEmbedding(bool interleaved, int32_t dim)
        : Layer({nv::LayerType::kROTARY_EMBEDDING, "RotaryEmbedding"}, 1),
          interleaved_(interleaved), dim_(dim) {
        check_dim(dim);
    }

    size_t input_limit() const override { return 4; }
    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 4, 4);
        for (size_t i = 1; i < 3; ++i) {
            expect_same_dtype(*this, in, 0, i);
            expect_rank(*this, in, i, 2, 3);
        }
        expect_index(*this, in, 3);
        expect_rank(*this, in, 3, 2, 2);
    }
    Values emit(const Emitter& e) override {
        for (size_t i = 1; i < 3; ++i) {
            int64_t rank = e.has(3) ? 2 : 3;
            expect_rank(*this, {e.type(0), e.type(1), e.type(2)}, i, rank, rank);
        }
        Value positions = e.has(3) ? as_dtype(e.g, e.in[3], DType::I64) : Value{};
        return {e.onnx1("RotaryEmbedding", {e.in[0], e.in[1], e.in[2], positions},
                        {attribute("interleaved", int64_t{interleaved_ ? 1 : 0}),
                         attribute("rotary_embedding_dim", int64_t{dim_})})};
    }
    bool setRotaryEmbeddingDim(int32_t dim) noexcept override {
        return change("IRotaryEmbeddingLayer::setRotaryEmbeddingDim", [&] {
            check_dim(dim);
            dim_ = dim;
        });
    }
    int32_t getRotaryEmbeddingDim() const noexcept override { return dim_; }

    INGOT_SETTING(bool, Interleaved, interleaved_, false)

private:
    static void check_dim(int32_t dim) {
        require(dim >= 0 && dim % 2 == 0, ErrorCode::InvalidArgument,
                "the size of the rotary embedding is ", dim, ", expected an even number");
    }
    int32_t dim_;
};

class KvCacheUpdate final : public Layer<nv::IKVCacheUpdateLayer> {
public:
    explicit KvCacheUpdate(nv::KVCacheMode mode)
        : Layer({nv::LayerType::kKVCACHE_UPDATE, "KVCacheUpdate"}, 1),
          mode_(checked(mode, "the mode")) {}

    size_t input_limit() const override { return 4; }
    int32_t aliased_input(size_t) const override { return 0; }
    void check(const InputTypes& in) const override {
        expect_rank(*this, in, 0, 4, 4);
        expect_rank(*this, in, 1, 3, 4); // the layout may be set later
        expect_same_dtype(*this, in, 0, 1);
        expect_index(*this, in, 2);
        expect_rank(*this, in, 2, 1, 1);
        if (in.size() > 3) {
            expect_index(*this, in, 3);
            expect_rank(*this, in, 3, 1, 1);
        }
    }
    Values emit(const Emitter& e) override {
        bool packed = form_ == nv::AttentionIOForm::kPACKED_NHD;
        require(e.rank(1) == (packed ? 3 : 4), ErrorCode::InvalidArgument, "input 1 ",
                inputs[1]->quoted(), " is ", e.type(1), ", expected rank ",
                packed ? "3 for the form kPACKED_NHD" : "4 for the form kPADDED_BHND");
        if (packed) {
            return {of_packed(e)};
        }
        return {e.onnx1("TensorScatter", {e.in[0], e.in[1], e.in[2]},
                        {attribute("axis", int64_t{2}), attribute("mode", std::string("linear"))})};
    }
    bool setCacheMode(nv::KVCacheMode mode) noexcept override {
        return change("IKVCacheUpdateLayer::setCacheMode",
                      [&] { mode_ = checked(mode, "the mode"); });
    }
    nv::KVCacheMode getCacheMode() const noexcept override { return mode_; }
    bool setUpdateForm(nv::AttentionIOForm form) noexcept override {
        return change("IKVCacheUpdateLayer::setUpdateForm",
                      [&] { form_ = checked(form, "the form"); });
    }
    nv::AttentionIOForm getUpdateForm() const noexcept override { return form_; }
    bool setUpdateLengths(nv::ITensor* lengths) noexcept override {
        return change("IKVCacheUpdateLayer::setUpdateLengths", [&] {
            NetworkTensor* t = lengths == nullptr ? nullptr : &network().ours(*lengths, "input 3");
            inputs.resize(4, nullptr);
            inputs[3] = t;
        });
    }
    nv::ITensor* getUpdateLengths() const noexcept override { return input(3); }

private:
    // For each slot of the cache, the new token that goes there, if any.
    static Value of_packed(const Emitter& e) {
        require(e.has(3), ErrorCode::InvalidArgument,
                "the update is packed, but where its sequences start is not said; set it with "
                "setUpdateLengths()");
        Graph& g = e.g;
        const Dims cache = e.dims(0);
        const Dims update = e.dims(1);
        Value starts = as_dtype(g, e.in[3], DType::I64);
        Value begin = ops::slice(g, starts, 0, 0, cache[0]);
        Value length = ops::sub(g, ops::slice(g, starts, 0, 1, cache[0]), begin);
        auto rows = [&](Value v) { return ops::reshape(g, v, {cache[0], Dim(1)}); };
        Value place = ops::sub(g, ops::iota(g, DType::I64, {cache[0], cache[2]}, 1),
                               rows(as_dtype(g, e.in[2], DType::I64))); // in the update
        Value written = ops::binary(
            g, ExprOp::And, ops::binary(g, ExprOp::Le, ops::scalar_i64(g, DType::I64, 0), place),
            ops::less(g, place, rows(length)));
        Value token = ops::add(g, place, rows(begin));
        token = ops::select(g, written, token, ops::scalar_i64(g, DType::I64, 0));
        Value fresh = ops::permute(g, ops::gather(g, e.in[1], token, 0), {0, 2, 1, 3});
        fresh = ops::broadcast_to(g, fresh, {cache[0], update[1], cache[2], update[2]});
        return ops::select(g, ops::unsqueeze(g, written, {1, 3}), fresh, e.in[0]);
    }
    nv::KVCacheMode mode_;
    nv::AttentionIOForm form_ = nv::AttentionIOForm::kPADDED_BHND;
};

// Computes every expert for every token; the scores of unchosen experts are 0.
class Moe final : public Layer<nv::IMoELayer> {
public:
    Moe() : Layer({nv::LayerType::kMOE, "MoE"}, 1) {}

    enum Input : size_t {
        Hidden,
        Chosen,
        Scores,
        Gate,
        Up,
        Down,
        GateBias,
        UpBias,
        DownBias,
        Scale,
        Limit
    };
    size_t input_limit() const override { return Limit; }
    void check(const InputTypes& in) const override {
        expect_float(*this, in, Hidden);
        expect_rank(*this, in, Hidden, 3, 3);
        expect_index(*this, in, Chosen);
        expect_rank(*this, in, Chosen, 3, 3);
        expect_same_dtype(*this, in, Hidden, Scores);
        expect_rank(*this, in, Scores, 3, 3);
        for (size_t i = Gate; i < in.size() && i < Scale; ++i) {
            expect_same_dtype(*this, in, Hidden, i);
            int64_t rank = i <= Down ? 3 : 2;
            expect_rank(*this, in, i, rank, rank);
        }
    }
    Values emit(const Emitter& e) override {
        Graph& g = e.g;
        require(e.has(Gate) && e.has(Up) && e.has(Down), ErrorCode::InvalidArgument,
                "there are no weights; set them with setGatedWeights()");
        const Dim experts = e.dims(Gate)[0];
        Value gate = product(e, e.in[Hidden], Gate, GateBias);
        Value up = product(e, e.in[Hidden], Up, UpBias);
        Value inner = ops::mul(g, activated(g, gate), widened_up(g, up));
        if (e.has(Scale) && quantised_ != nv::DataType::kFLOAT) {
            inner = quantised(e, inner);
        }
        Value out = product(e, inner, Down, DownBias); // B E S C
        Value chosen = ops::unsqueeze(g, as_dtype(g, e.in[Chosen], DType::I64), {3});
        Value hit = ops::equal(g, chosen, ops::iota(g, DType::I64, {experts}, 0)); // B S K E
        Value zero = ops::scalar(g, e.dtype(Scores), 0);
        Value score = ops::select(g, hit, ops::unsqueeze(g, e.in[Scores], {3}), zero);
        score = ops::reduce_sum(g, score, {2});                            // B S E
        score = ops::unsqueeze(g, ops::permute(g, score, {0, 2, 1}), {3}); // B E S 1
        return {ops::reduce_sum(g, ops::mul(g, out, score), {1})};
    }
    void setGatedWeights(nv::ITensor& gate, nv::ITensor& up, nv::ITensor& down,
                         nv::MoEActType activation) noexcept override {
        change("IMoELayer::setGatedWeights", [&] {
            checked(activation, "the activation");
            set_tensors(Gate, {&gate, &up, &down});
            activation_ = activation;
        });
    }
    void setGatedBiases(nv::ITensor& gate, nv::ITensor& up, nv::ITensor& down) noexcept override {
        change("IMoELayer::setGatedBiases", [&] { set_tensors(GateBias, {&gate, &up, &down}); });
    }
    void setQuantizationStatic(nv::ITensor& scale, nv::DataType type) noexcept override {
        change("IMoELayer::setQuantizationStatic", [&] {
            check_quantised(type);
            set_tensors(Scale, {&scale});
            quantised_ = type;
            dynamic_block_ = {};
        });
    }
    void setQuantizationDynamicDblQ(nv::ITensor& scale, nv::DataType type, const nv::Dims& block,
                                    nv::DataType scale_type) noexcept override {
        change("IMoELayer::setQuantizationDynamicDblQ", [&] {
            check_block_type(type);
            check_block(block);
            check_block_scale_type(scale_type);
            set_tensors(Scale, {&scale});
            quantised_ = type;
            dynamic_block_ = block;
            scale_type_ = scale_type;
        });
    }
    void setSwigluParams(float limit, float alpha, float beta) noexcept override {
        limit_ = limit;
        alpha_ = alpha;
        assign("setSwigluParams", beta_, beta);
    }

    INGOT_ENUM_SETTING(IMoELayer, nv::MoEActType, ActivationType, activation_, {}, "the activation")
    INGOT_CHECKED_SETTING(IMoELayer, nv::DataType, nv::DataType, QuantizationToType, quantised_,
                          nv::DataType::kFLOAT, check_quantised(v))
    INGOT_DIMS_SETTING(IMoELayer, QuantizationBlockShape, dynamic_block_, {}, check_block(v))
    INGOT_CHECKED_SETTING(IMoELayer, nv::DataType, nv::DataType, DynQOutputScaleType, scale_type_,
                          nv::DataType::kFLOAT, check_block_scale_type(v))
    INGOT_SETTING(float, SwigluParamLimit, limit_, std::numeric_limits<float>::infinity())
    INGOT_SETTING(float, SwigluParamAlpha, alpha_, 1)
    INGOT_SETTING(float, SwigluParamBeta, beta_, 0)

private:
    static void check_block(const nv::Dims& v) {
        numbers_of(v, "the block");
        for (int32_t i = 0; i < v.nbDims; ++i) {
            require(v.d[i] >= 1, ErrorCode::InvalidArgument, "the block is ", text_of(v),
                    ", expected sizes of 1 or more");
        }
    }
    // Quantises and dequantises: B E S I.
    Value quantised(const Emitter& e, Value inner) const {
        Graph& g = e.g;
        DType t = e.dtype(Hidden);
        if (dynamic_block_.nbDims == 0) {
            Value scale = as_dtype(g, e.in[Scale], t);
            inner = ops::quantize(g, {1, 0, dtype_of(quantised_), true}, inner, scale);
            return ops::dequantize(g, {1, 0, t}, inner, scale);
        }
        const nv::Dims& block = dynamic_block_; // over B, S, K, I
        bool along_last =
            block.nbDims == 4 && block.d[0] == 1 && block.d[1] == 1 && block.d[2] == 1;
        require(along_last, ErrorCode::Unsupported, "the block is ", text_of(block),
                ": blocks of the last of four dimensions are supported");
        const Dim& length = g.type(inner).dims[3];
        require(length.is_const() && length.value() % block.d[3] == 0, ErrorCode::InvalidArgument,
                "the hidden size of the experts is ", length,
                ", which does not divide into blocks of ", block.d[3]);
        QuantizedBlocks q =
            quantize_blocks(g, inner, {3, block.d[3], quantised_, scale_type_}, e.in[Scale]);
        return ops::dequantize(g, {3, block.d[3], t}, q.elements, as_dtype(g, q.scales, t));
    }
    static void check_quantised(nv::DataType t) {
        require(t == nv::DataType::kFP8 || t == nv::DataType::kFP4 || t == nv::DataType::kFLOAT,
                ErrorCode::InvalidArgument, "the type is ", name_of(t), ", expected FP8 or FP4");
    }
    void set_tensors(size_t first, std::initializer_list<nv::ITensor*> tensors) {
        std::vector<NetworkTensor*> before = inputs;
        inputs.resize(std::max(inputs.size(), first + tensors.size()), nullptr);
        InputTypes types(inputs.size());
        try {
            for (nv::ITensor* t : tensors) {
                inputs[first] = &network().ours(*t, str("input ", first));
                types[first] = network().try_type_of(*inputs[first]);
                ++first;
            }
            types[Hidden] = network().try_type_of(*inputs[Hidden]);
            check(types);
        } catch (...) {
            inputs = std::move(before);
            throw;
        }
    }
    // x [B,S,C] or [B,E,S,I], w [E,C,I] -> [B,E,S,I].
    static Value product(const Emitter& e, Value x, size_t w, size_t bias) {
        Graph& g = e.g;
        Value rows = g.type(x).rank() == 3 ? ops::unsqueeze(g, x, {1}) : x;
        Value y = ops::matmul(g, rows, ops::unsqueeze(g, e.in[w], {0}));
        return e.has(bias) ? ops::add(g, y, ops::unsqueeze(g, e.in[bias], {0, 2})) : y;
    }
    bool limited() const { return limit_ < std::numeric_limits<float>::infinity(); }
    Value activated(Graph& g, Value gate) const {
        if (activation_ == nv::MoEActType::kNONE) {
            return gate;
        }
        auto limit = static_cast<double>(limit_);
        Value x = limited() ? ops::minimum(g, gate, limit) : gate;
        Value slope = alpha_ == 1 ? x : ops::mul(g, x, static_cast<double>(alpha_));
        return ops::mul(g, x, ops::unary(g, ExprOp::Sigmoid, slope));
    }
    Value widened_up(Graph& g, Value up) const {
        auto limit = static_cast<double>(limit_);
        Value x = limited() ? ops::maximum(g, ops::minimum(g, up, limit), -limit) : up;
        return beta_ == 0 ? x : ops::add(g, x, static_cast<double>(beta_));
    }
};

} // namespace

nv::IRotaryEmbeddingLayer* Network::addRotaryEmbedding(nv::ITensor& input, nv::ITensor& cos_cache,
                                                       nv::ITensor& sin_cache, bool interleaved,
                                                       int32_t rotary_embedding_dim) noexcept {
    return add<RotaryEmbedding>("INetworkDefinition::addRotaryEmbedding",
                                {&input, &cos_cache, &sin_cache}, interleaved,
                                rotary_embedding_dim);
}

nv::IKVCacheUpdateLayer* Network::addKVCacheUpdate(nv::ITensor& cache, nv::ITensor& update,
                                                   nv::ITensor& write_indices,
                                                   nv::KVCacheMode cache_mode) noexcept {
    return add<KvCacheUpdate>("INetworkDefinition::addKVCacheUpdate",
                              {&cache, &update, &write_indices}, cache_mode);
}

nv::IMoELayer* Network::addMoE(nv::ITensor& hidden_states, nv::ITensor& selected_experts_for_tokens,
                               nv::ITensor& scores_for_selected_experts) noexcept {
    return add<Moe>("INetworkDefinition::addMoE",
                    {&hidden_states, &selected_experts_for_tokens, &scores_for_selected_experts});
}

} // namespace ingot::api
