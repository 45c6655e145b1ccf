// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/layers/attention.h"

#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/packed.h"

#include <limits>

namespace ingot::api {

namespace {

template <class Interface>
class AttentionBorder : public Layer<Interface> {
public:
    AttentionBorder(AttentionUnit& unit, LayerKind kind, size_t count)
        : Layer<Interface>(kind, count), owner(unit) {}
    nv::IAttention* getAttention() const noexcept override { return &owner; }

protected:
    AttentionUnit& owner;
};

// The layer with the inputs; the other layer of the pair emits the ops.
class AttentionInput final : public AttentionBorder<nv::IAttentionInputLayer> {
public:
    explicit AttentionInput(AttentionUnit& unit)
        : AttentionBorder(unit, {nv::LayerType::kATTENTION_INPUT, "Attention Input"}, 0) {}

    Values emit(const Emitter&) override { return {}; }
};

} // namespace

class AttentionOutput final : public AttentionBorder<nv::IAttentionOutputLayer> {
public:
    explicit AttentionOutput(AttentionUnit& unit)
        : AttentionBorder(unit, {nv::LayerType::kATTENTION_OUTPUT, "Attention Output"}, 1) {}

    void check(const InputTypes& in) const override {
        for (size_t i = 0; i < 3; ++i) {
            expect_float(*this, in, i);
            expect_rank(*this, in, i, 3, 4); // the layouts may be set later
            expect_same_dtype(*this, in, 0, i);
        }
        if (in.size() > AttentionUnit::Mask && in[AttentionUnit::Mask]) {
            expect_rank(*this, in, AttentionUnit::Mask, 4, 4);
            DType query = in[0] ? in[0]->dtype : DType::F32;
            expect_dtype(*this, in, AttentionUnit::Mask, {DType::Bool, query});
        }
        for (size_t i : {AttentionUnit::QueryLengths, AttentionUnit::KeyValueLengths}) {
            if (in.size() > i) {
                expect_index(*this, in, i);
                expect_rank(*this, in, i, 1, 1);
            }
        }
    }
    Values emit(const Emitter& e) override {
        check_forms(e);
        bool causal = owner.causal != nv::CausalMaskKind::kNONE;
        require(!causal || !e.has(AttentionUnit::Mask), ErrorCode::InvalidArgument,
                "there are both a mask and a causal kind");
        require(owner.quantised == nv::DataType::kFLOAT || e.has(AttentionUnit::Scale),
                ErrorCode::InvalidArgument, "the normalised scores are to be quantised to ",
                name_of(owner.quantised),
                ", but there is no scale; set one with setNormalizationQuantizeScale()");
        if (packed(owner.query_form) || packed(owner.key_value_form)) {
            return {of_packed(e, causal)};
        }
        check_heads(e);
        return {attended(e, causal)};
    }
    std::vector<Unused> unused_settings() const override {
        std::vector<Unused> all;
        if (given(AttentionUnit::Scale) && owner.quantised == nv::DataType::kFLOAT) {
            all.push_back({"IAttention::setNormalizationQuantizeScale",
                           "setNormalizationQuantizeToType() gives no type"});
        }
        if (given(AttentionUnit::QueryLengths) && !packed(owner.query_form)) {
            all.push_back({"IAttention::setQueryLengths",
                           "queries of the form kPADDED_BHND are computed in their full length"});
        }
        if (owner.getDecomposable()) {
            all.push_back({"IAttention::setDecomposable",
                           "an attention that no kernel takes whole is always decomposed", true});
        }
        return all;
    }

private:
    bool given(size_t i) const { return inputs.size() > i && inputs[i] != nullptr; }
    static bool packed(nv::AttentionIOForm form) {
        return form == nv::AttentionIOForm::kPACKED_NHD;
    }
    void check_forms(const Emitter& e) const {
        for (size_t i = 0; i < 3; ++i) {
            bool is_packed = packed(i == 0 ? owner.query_form : owner.key_value_form);
            size_t lengths = i == 0 ? AttentionUnit::QueryLengths : AttentionUnit::KeyValueLengths;
            require(e.rank(i) == (is_packed ? 3 : 4), ErrorCode::InvalidArgument, "input ", i, ' ',
                    inputs[i]->quoted(), " is ", e.type(i), ", expected rank ",
                    is_packed ? "3 for the form kPACKED_NHD" : "4 for the form kPADDED_BHND");
            require(!is_packed || e.has(lengths), ErrorCode::InvalidArgument, "input ", i, ' ',
                    inputs[i]->quoted(), " is packed, but where its sequences start is not said; ",
                    i == 0 ? "set it with setQueryLengths()" : "set it with setKeyValueLengths()");
        }
    }
    void check_heads(const Emitter& e) const {
        const Dim& heads = e.dims(0)[1];
        const Dim& groups = e.dims(1)[1];
        require(!heads.is_const() || !groups.is_const() ||
                    (groups.value() > 0 && heads.value() % groups.value() == 0),
                ErrorCode::InvalidArgument, "input 0 ", inputs[0]->quoted(), " is ", e.type(0),
                " and input 1 ", inputs[1]->quoted(), " is ", e.type(1), ": ", heads,
                " heads are no multiple of ", groups);
    }
    Value attended(const Emitter& e, bool causal) const {
        bool softmax = owner.normalization == nv::AttentionNormalizationOp::kSOFTMAX;
        bool quantised = owner.quantised != nv::DataType::kFLOAT;
        if (softmax && !quantised) {
            ops::Attention a;
            a.causal = causal;
            a.offset = causal ? offset(e) : Dim(0);
            return ops::attention(e.g, a, e.in[0], e.in[1], e.in[2], mask(e));
        }
        return spelled_out(e, softmax, quantised, causal);
    }
    // Joins the tokens of all sequences into one sequence, with a mask that keeps them apart.
    Value of_packed(const Emitter& e, bool causal) const {
        Graph& g = e.g;
        require(!e.has(AttentionUnit::Mask), ErrorCode::Unsupported,
                "a mask goes with the form kPADDED_BHND only; take a causal kind");
        bool packed_query = packed(owner.query_form);
        Tokens queries = tokens(e, AttentionUnit::Query, AttentionUnit::QueryLengths, packed_query);
        Tokens keys = tokens(e, AttentionUnit::Key, AttentionUnit::KeyValueLengths,
                             packed(owner.key_value_form));
        bool right = owner.causal == nv::CausalMaskKind::kLOWER_RIGHT;
        Values in(AttentionUnit::Count);
        in[AttentionUnit::Query] = one_sequence(e, AttentionUnit::Query);
        in[AttentionUnit::Key] = one_sequence(e, AttentionUnit::Key);
        in[AttentionUnit::KeyValue] = one_sequence(e, AttentionUnit::KeyValue);
        in[AttentionUnit::Mask] =
            ops::unsqueeze(g, visible_tokens(g, queries, keys, causal, right), {0, 1});
        in[AttentionUnit::Scale] =
            e.has(AttentionUnit::Scale) ? e.in[AttentionUnit::Scale] : Value{};
        Emitter flat(e.emission, g, e.layer, std::move(in));
        check_heads(flat);
        Value y = attended(flat, false); // 1 H N D
        if (packed_query) {
            return ops::permute(g, ops::squeeze(g, y, {0}), {1, 0, 2});
        }
        const Dims d = e.dims(AttentionUnit::Query);
        const Dim size = flat.dims(AttentionUnit::KeyValue)[3];
        return ops::permute(g, ops::reshape(g, y, {d[1], d[0], d[2], size}), {1, 0, 2, 3});
    }
    static Tokens tokens(const Emitter& e, size_t i, size_t lengths, bool is_packed) {
        const Dims d = e.dims(i);
        if (is_packed) {
            return packed_tokens(e.g, d[0], e.in[lengths]);
        }
        bool given = i == AttentionUnit::Key && e.has(lengths);
        return padded_tokens(e.g, d[0], d[2], given ? e.in[lengths] : Value{});
    }
    // N H D or B H S D -> 1 H N D.
    static Value one_sequence(const Emitter& e, size_t i) {
        const Dims d = e.dims(i);
        if (d.size() == 3) {
            return ops::unsqueeze(e.g, ops::permute(e.g, e.in[i], {1, 0, 2}), {0});
        }
        Value heads_first = ops::permute(e.g, e.in[i], {1, 0, 2, 3});
        return ops::reshape(e.g, heads_first, {Dim(1), d[1], d[0] * d[2], d[3]});
    }
    Dim offset(const Emitter& e) const {
        bool right = owner.causal == nv::CausalMaskKind::kLOWER_RIGHT;
        return right ? e.dims(1)[2] - e.dims(0)[2] : Dim(0);
    }
    // The given mask combined with the mask of key lengths.
    Value mask(const Emitter& e) const {
        Value m = e.has(AttentionUnit::Mask) ? e.in[AttentionUnit::Mask] : Value{};
        if (!e.has(AttentionUnit::KeyValueLengths)) {
            return m;
        }
        Graph& g = e.g;
        Value lengths = as_dtype(g, e.in[AttentionUnit::KeyValueLengths], DType::I64);
        lengths = ops::reshape(g, lengths, {e.dims(1)[0], Dim(1), Dim(1), Dim(1)});
        Value inside = ops::less(g, ops::iota(g, DType::I64, {e.dims(1)[2]}, 0), lengths);
        if (!m.valid()) {
            return inside;
        }
        if (g.type(m).dtype == DType::Bool) {
            return ops::binary(g, ExprOp::And, m, inside);
        }
        Value never = ops::scalar(g, g.type(m).dtype, -std::numeric_limits<double>::infinity());
        return ops::select(g, inside, m, never);
    }
    // Repeats each group's keys or values for every head of the group.
    static Value for_heads(const Emitter& e, size_t i) {
        const Dims d = e.dims(i);
        const Dim& heads = e.dims(0)[1];
        if (d[1] == heads) {
            return e.in[i];
        }
        Value v = ops::unsqueeze(e.g, e.in[i], {2});
        Dims wide = ops::dims(e.g, v);
        wide[2] = floor_div(heads, d[1]);
        Dims flat = d;
        flat[1] = heads;
        return ops::reshape(e.g, ops::broadcast_to(e.g, v, wide), flat);
    }
    Value spelled_out(const Emitter& e, bool softmax, bool quantised, bool causal) const {
        Graph& g = e.g;
        Value keys = for_heads(e, AttentionUnit::Key);
        Value values = for_heads(e, AttentionUnit::KeyValue);
        Value scores = ops::matmul(g, e.in[0], ops::transpose_last(g, keys));
        DType t = e.dtype(0);
        double hidden = softmax ? -std::numeric_limits<double>::infinity() : 0.0;
        auto hide = [&](Value visible) {
            scores = ops::select(g, visible, scores, ops::scalar(g, t, hidden));
        };
        Value m = mask(e);
        if (m.valid() && g.type(m).dtype == DType::Bool) {
            hide(m);
        } else if (m.valid()) {
            scores = ops::add(g, scores, m);
        }
        if (causal) {
            Dims square = {e.dims(0)[2], e.dims(1)[2]};
            Value query = ops::iota(g, DType::I64, square, 0);
            Value key = ops::iota(g, DType::I64, square, 1);
            Value last = ops::add(g, query, ops::dim_scalar(g, offset(e)));
            hide(ops::binary(g, ExprOp::Le, key, last));
        }
        Value p = softmax ? ops::softmax(g, scores, 3) : scores;
        if (quantised) {
            Value scale = as_dtype(g, e.in[AttentionUnit::Scale], t);
            DType to = dtype_of(owner.quantised);
            p = ops::quantize(g, {1, 0, to, true}, p, scale);
            p = ops::dequantize(g, {1, 0, t}, p, scale);
        }
        return ops::matmul(g, p, values);
    }
};

bool AttentionUnit::set(std::string_view method, size_t i, nv::ITensor* tensor) noexcept {
    return change(method, [&] {
        std::vector<NetworkTensor*> before = computes->inputs;
        NetworkTensor* t = tensor == nullptr ? nullptr : &network_.ours(*tensor, str("input ", i));
        computes->inputs.resize(std::max(before.size(), i + 1), nullptr);
        computes->inputs[i] = t;
        if (i < 3) {
            begins->inputs[i] = t;
        }
        try {
            InputTypes types(computes->inputs.size());
            if (t != nullptr) {
                types[i] = network_.try_type_of(*t);
            }
            with_place([&] { return computes->described(); }, [&] { computes->check(types); });
        } catch (...) {
            if (i < 3) {
                begins->inputs[i] = before[i];
            }
            computes->inputs = std::move(before);
            throw;
        }
    });
}

bool AttentionUnit::setNormalizationOperation(nv::AttentionNormalizationOp op) noexcept {
    return change("IAttention::setNormalizationOperation",
                  [&] { normalization = checked(op, "the operation"); });
}

bool AttentionUnit::setMask(nv::ITensor& mask) noexcept {
    return set("IAttention::setMask", Mask, &mask);
}

bool AttentionUnit::setCausalKind(nv::CausalMaskKind kind) noexcept {
    return change("IAttention::setCausalKind", [&] { causal = checked(kind, "the causal kind"); });
}

bool AttentionUnit::setDecomposable(bool v) noexcept {
    decomposable_ = v;
    return true;
}

bool AttentionUnit::setInput(int32_t index, nv::ITensor& input) noexcept {
    if (index < 0 || index > 2) {
        return change("IAttention::setInput", [&] {
            fail(ErrorCode::InvalidArgument, "index ", index, " is out of range: it has 3 inputs");
        });
    }
    return set("IAttention::setInput", static_cast<size_t>(index), &input);
}

nv::ITensor* AttentionUnit::getInput(int32_t index) const noexcept {
    return index < 0 || index > 2 ? nullptr : input(static_cast<size_t>(index));
}

nv::ITensor* AttentionUnit::getOutput(int32_t index) const noexcept {
    return computes->output(index);
}

bool AttentionUnit::setName(const char* name) noexcept {
    return change("IAttention::setName", [&] {
        require(name != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        computes->name = name;
        begins->name = str(name, " input");
    });
}

const char* AttentionUnit::getName() const noexcept {
    return computes->name.c_str();
}

bool AttentionUnit::setNormalizationQuantizeScale(nv::ITensor& tensor) noexcept {
    return set("IAttention::setNormalizationQuantizeScale", Scale, &tensor);
}

bool AttentionUnit::setNormalizationQuantizeToType(nv::DataType type) noexcept {
    return change("IAttention::setNormalizationQuantizeToType", [&] {
        bool fits = type == nv::DataType::kFP8 || type == nv::DataType::kINT8 ||
                    type == nv::DataType::kFLOAT;
        require(fits, ErrorCode::InvalidArgument, "the type is ", name_of(type),
                ", expected FP8 or INT8");
        quantised = type;
    });
}

bool AttentionUnit::setMetadata(const char* metadata) noexcept {
    return change("IAttention::setMetadata", [&] {
        require(metadata != nullptr, ErrorCode::InvalidArgument, "metadata is nullptr");
        computes->metadata = metadata;
    });
}

const char* AttentionUnit::getMetadata() const noexcept {
    return computes->metadata.c_str();
}

bool AttentionUnit::setNbRanks(int32_t nb_ranks) noexcept {
    return computes->set_rank_count(nb_ranks);
}

int32_t AttentionUnit::getNbRanks() const noexcept {
    return computes->rank_count;
}

bool AttentionUnit::setQueryForm(nv::AttentionIOForm form) noexcept {
    return change("IAttention::setQueryForm", [&] { query_form = checked(form, "the form"); });
}

bool AttentionUnit::setKeyValueForm(nv::AttentionIOForm form) noexcept {
    return change("IAttention::setKeyValueForm",
                  [&] { key_value_form = checked(form, "the form"); });
}

bool AttentionUnit::setQueryLengths(nv::ITensor* lengths) noexcept {
    return set("IAttention::setQueryLengths", QueryLengths, lengths);
}

bool AttentionUnit::setKeyValueLengths(nv::ITensor* lengths) noexcept {
    return set("IAttention::setKeyValueLengths", KeyValueLengths, lengths);
}

nv::IAttention* Network::addAttentionV2(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                                        nv::AttentionNormalizationOp norm_op,
                                        nv::CausalMaskKind causal_kind) noexcept {
    constexpr std::string_view method = "INetworkDefinition::addAttentionV2";
    return report_.guard(method, static_cast<nv::IAttention*>(nullptr), [&]() -> nv::IAttention* {
        auto unit = std::make_unique<AttentionUnit>(*this);
        unit->normalization = checked(norm_op, "the operation");
        unit->causal = checked(causal_kind, "the causal kind");
        std::vector<NetworkTensor*> in = {&ours(query, "input 0"), &ours(key, "input 1"),
                                          &ours(value, "input 2")};
        unit->begins = append(std::make_unique<AttentionInput>(std::ref(*unit)), in);
        try {
            unit->computes = append(std::make_unique<AttentionOutput>(std::ref(*unit)), in);
        } catch (...) {
            layers_.pop_back();
            throw;
        }
        attentions_.push_back(std::move(unit));
        return attentions_.back().get();
    });
}

} // namespace ingot::api
