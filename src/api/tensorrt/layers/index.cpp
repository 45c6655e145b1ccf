// SPDX-License-Identifier: Apache-2.0
// Layers that read and write by index: gather, scatter, one-hot, non-zero, reverse sequence, NMS.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

#include <limits>

namespace ingot::api {

namespace {

void check_index_type(nv::DataType t) {
    require(t == nv::DataType::kINT32 || t == nv::DataType::kINT64, ErrorCode::InvalidArgument,
            "the type of indices is ", name_of(t), ", expected INT32 or INT64");
}

nv::DataType checked_index_type(nv::DataType t) {
    check_index_type(t);
    return t;
}

class GatherLayer final : public Layer<nv::IGatherLayer> {
public:
    GatherLayer(nv::GatherMode mode, int32_t axis)
        : Layer({nv::LayerType::kGATHER, "Gather"}, 1), axis_(axis),
          mode_(checked(mode, "the mode")) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        expect_rank(*this, in, 0, 1);
        expect_index(*this, in, 1);
        if (mode_ != nv::GatherMode::kND) {
            expect_axis(*this, in, 0, axis_);
        }
        if (mode_ == nv::GatherMode::kELEMENT && in[0] && in[1]) {
            expect_rank(*this, in, 1, in[0]->rank(), in[0]->rank());
        }
    }
    Values emit(const Emitter& e) override {
        switch (mode_) {
        case nv::GatherMode::kELEMENT:
            return {
                e.onnx1("GatherElements", {e.in[0], e.in[1]}, {attribute("axis", int64_t{axis_})})};
        case nv::GatherMode::kND:
            return {e.onnx1("GatherND", {e.in[0], e.in[1]},
                            {attribute("batch_dims", int64_t{shared_})})};
        case nv::GatherMode::kDEFAULT:
            break;
        }
        require(shared_ <= 1, ErrorCode::InvalidArgument,
                "the number of element-wise dimensions is ", shared_,
                ", expected 0 or 1 for kDEFAULT");
        if (shared_ == 0) {
            return {ops::gather_wrapped(e.g, e.in[0], e.in[1], axis_)};
        }
        return {batched(e)};
    }

    INGOT_CHECKED_SETTING(IGatherLayer, int32_t, int32_t, GatherAxis, axis_, 0,
                          require(v >= 0 && v < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                                  "the axis is ", v, ", expected 0 to ", nv::Dims::MAX_DIMS - 1))
    INGOT_CHECKED_SETTING(IGatherLayer, int32_t, int32_t, NbElementWiseDims, shared_, 0,
                          require(v >= 0 && v < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                                  "the number of element-wise dimensions is ", v,
                                  ", expected 0 to ", nv::Dims::MAX_DIMS - 1))
    INGOT_ENUM_SETTING(IGatherLayer, nv::GatherMode, Mode, mode_, {}, "the mode")

private:
    // Gathers row b of the data by row b of the indices.
    Value batched(const Emitter& e) const {
        Graph& g = e.g;
        const Dims data = e.dims(0);
        const Dims at = e.dims(1);
        require(axis_ >= 1 && !at.empty(), ErrorCode::InvalidArgument,
                "with an element-wise dimension the axis is at least 1, and the indices have one "
                "dimension or more");
        auto axis = static_cast<size_t>(axis_);
        std::vector<int64_t> front = {0, axis_}; // batch, gathered axis, the rest
        for (int64_t i = 1; i < e.rank(0); ++i) {
            if (i != axis_) {
                front.push_back(i);
            }
        }
        Value rows = ops::permute(g, e.in[0], front);
        Dims flat = ops::dims(g, rows);
        flat.erase(flat.begin());
        flat[0] = data[0] * data[axis];
        rows = ops::reshape(g, rows, flat);
        Value index = ops::wrap_indices(g, as_dtype(g, e.in[1], DType::I64), data[axis]);
        Value row = ops::mul(g, ops::iota(g, DType::I64, at, 0), ops::dim_scalar(g, data[axis]));
        Value y = ops::gather(g, rows, ops::add(g, index, row), 0);
        std::vector<int64_t> back = {0}; // batch, before the axis, indices, after it
        auto n = static_cast<int64_t>(at.size());
        for (int64_t i = 0; i < axis_ - 1; ++i) {
            back.push_back(n + i);
        }
        for (int64_t i = 1; i < n; ++i) {
            back.push_back(i);
        }
        for (int64_t i = n + axis_ - 1; i < g.type(y).rank(); ++i) {
            back.push_back(i);
        }
        return ops::permute(g, y, back);
    }
};

class ScatterLayer final : public Layer<nv::IScatterLayer> {
public:
    explicit ScatterLayer(nv::ScatterMode mode)
        : Layer({nv::LayerType::kSCATTER, "Scatter"}, 1), mode_(checked(mode, "the mode")) {}

    void check(const InputTypes& in) const override {
        expect_rank(*this, in, 0, 1);
        expect_index(*this, in, 1);
        expect_same_dtype(*this, in, 0, 2);
    }
    Values emit(const Emitter& e) override {
        if (mode_ == nv::ScatterMode::kND) {
            return {e.onnx1("ScatterND", {e.in[0], e.in[1], e.in[2]})};
        }
        return {e.onnx1("ScatterElements", {e.in[0], e.in[1], e.in[2]},
                        {attribute("axis", int64_t{axis_})})};
    }

    INGOT_ENUM_SETTING(IScatterLayer, nv::ScatterMode, Mode, mode_, {}, "the mode")
    INGOT_CHECKED_SETTING(IScatterLayer, int32_t, int32_t, Axis, axis_, 0,
                          require(v >= 0 && v < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                                  "the axis is ", v, ", expected 0 to ", nv::Dims::MAX_DIMS - 1))
};

class OneHot final : public Layer<nv::IOneHotLayer> {
public:
    explicit OneHot(int32_t axis) : Layer({nv::LayerType::kONE_HOT, "OneHot"}, 1), axis_(axis) {}

    bool reads_shape(size_t i) const override { return i == 2; }
    void check(const InputTypes& in) const override {
        expect_index(*this, in, 0);
        expect_rank(*this, in, 1, 1, 1);
        expect_index(*this, in, 2);
        expect_rank(*this, in, 2, 0, 0);
        if (in[0]) {
            require(axis_ >= -1 && axis_ <= in[0]->rank(), ErrorCode::InvalidArgument,
                    "the axis is ", axis_, ", but input 0 ", inputs[0]->quoted(), " is ", *in[0]);
        }
    }
    Values emit(const Emitter& e) override {
        return {
            e.onnx1("OneHot", {e.in[0], e.in[2], e.in[1]}, {attribute("axis", int64_t{axis_})})};
    }

    INGOT_SETTING(int32_t, Axis, axis_, 0)
};

class NonZeroLayer final : public Layer<nv::INonZeroLayer> {
public:
    explicit NonZeroLayer(nv::DataType type)
        : Layer({nv::LayerType::kNON_ZERO, "NonZero"}, 1), type_(checked_index_type(type)) {}

    Values emit(const Emitter& e) override {
        Value y = e.g.add1(nonzero_def, NonZero{e.g.fresh_symbol()}, {e.in[0]});
        return {as_dtype(e.g, y, dtype_of(type_))};
    }
    bool setIndicesType(nv::DataType type) noexcept override {
        return change("INonZeroLayer::setIndicesType", [&] { type_ = checked_index_type(type); });
    }
    nv::DataType getIndicesType() const noexcept override { return type_; }

private:
    nv::DataType type_;
};

class ReverseSequence final : public Layer<nv::IReverseSequenceLayer> {
public:
    ReverseSequence() : Layer({nv::LayerType::kREVERSE_SEQUENCE, "ReverseSequence"}, 1) {}

    void check(const InputTypes& in) const override {
        expect_rank(*this, in, 0, 2);
        expect_index(*this, in, 1);
        expect_rank(*this, in, 1, 1, 1);
    }
    Values emit(const Emitter& e) override {
        return {e.onnx1("ReverseSequence", {e.in[0], e.in[1]},
                        {attribute("batch_axis", int64_t{batch_}),
                         attribute("time_axis", int64_t{sequence_})})};
    }

    INGOT_SETTING(int32_t, BatchAxis, batch_, 1)
    INGOT_SETTING(int32_t, SequenceAxis, sequence_, 0)
};

class NmsLayer final : public Layer<nv::INMSLayer> {
public:
    explicit NmsLayer(nv::DataType type)
        : Layer({nv::LayerType::kNMS, "NMS"}, 2), type_(checked_index_type(type)) {}

    size_t input_limit() const override { return 5; }
    bool reads_shape(size_t i) const override { return i == 2; }
    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 3, 4);
        expect_same_dtype(*this, in, 0, 1);
        expect_rank(*this, in, 1, 3, 3);
        expect_index(*this, in, 2);
        for (size_t i = 2; i < 5; ++i) {
            expect_rank(*this, in, i, 0, 0);
        }
    }
    Values emit(const Emitter& e) override {
        Graph& g = e.g;
        Value boxes = as_dtype(g, e.in[0], DType::F32);
        if (e.rank(0) == 4) {
            require(e.dims(0)[2].is_const(1), ErrorCode::Unsupported, "input 0 ",
                    inputs[0]->quoted(), " is ", e.type(0),
                    ": boxes of their own for each class are not supported");
            boxes = ops::squeeze(g, boxes, {2});
        }
        Value scores = ops::permute(g, as_dtype(g, e.in[1], DType::F32), {0, 2, 1});
        scores = limited(g, scores);
        auto threshold = [&](size_t i) {
            return e.has(i) ? as_dtype(g, e.in[i], DType::F32) : ops::scalar(g, DType::F32, 0);
        };
        bool centres = format_ == nv::BoundingBoxFormat::kCENTER_SIZES;
        Value most = as_dtype(g, e.in[2], DType::I64);
        Value y = g.add1(nms_def, Nms{centres, g.fresh_symbol()},
                         {boxes, scores, most, threshold(3), threshold(4)});
        Value count = ops::dim_scalar(g, ops::dims(g, y)[0], dtype_of(type_));
        return {as_dtype(g, y, dtype_of(type_)), count};
    }
    bool setIndicesType(nv::DataType type) noexcept override {
        return change("INMSLayer::setIndicesType", [&] { type_ = checked_index_type(type); });
    }
    nv::DataType getIndicesType() const noexcept override { return type_; }

    INGOT_ENUM_SETTING(INMSLayer, nv::BoundingBoxFormat, BoundingBoxFormat, format_, {},
                       "the format of boxes")
    INGOT_CHECKED_SETTING(INMSLayer, int32_t, int32_t, TopKBoxLimit, limit_, 2000,
                          require(v >= 1, ErrorCode::InvalidArgument, "the limit of boxes is ", v,
                                  ", expected 1 or more"))

private:
    // Keeps the scores of the best boxes of each class, and zeroes the others.
    Value limited(Graph& g, Value scores) const {
        const Dim boxes = ops::dims(g, scores)[2];
        if (boxes.is_const() && boxes.value() <= limit_) {
            return scores;
        }
        Dim k = min(boxes, limit_);
        Value best = ops::topk(g, {k, 2, true}, scores)[0];
        Value least = ops::slice(g, best, 2, k - 1, 1);
        Value never = ops::scalar(g, DType::F32, -std::numeric_limits<double>::infinity());
        return ops::select(g, ops::less(g, scores, least), never, scores);
    }
    nv::DataType type_;
};

} // namespace

nv::IGatherLayer* Network::addGather(nv::ITensor& data, nv::ITensor& indices,
                                     int32_t axis) noexcept {
    return add<GatherLayer>("INetworkDefinition::addGather", {&data, &indices},
                            nv::GatherMode::kDEFAULT, axis);
}

nv::IGatherLayer* Network::addGatherV2(nv::ITensor& data, nv::ITensor& indices,
                                       nv::GatherMode mode) noexcept {
    return add<GatherLayer>("INetworkDefinition::addGatherV2", {&data, &indices}, mode, 0);
}

nv::IScatterLayer* Network::addScatter(nv::ITensor& data, nv::ITensor& indices,
                                       nv::ITensor& updates, nv::ScatterMode mode) noexcept {
    return add<ScatterLayer>("INetworkDefinition::addScatter", {&data, &indices, &updates}, mode);
}

nv::IOneHotLayer* Network::addOneHot(nv::ITensor& indices, nv::ITensor& values, nv::ITensor& depth,
                                     int32_t axis) noexcept {
    return add<OneHot>("INetworkDefinition::addOneHot", {&indices, &values, &depth}, axis);
}

nv::INonZeroLayer* Network::addNonZero(nv::ITensor& input, nv::DataType indices_type) noexcept {
    return add<NonZeroLayer>("INetworkDefinition::addNonZero", {&input}, indices_type);
}

nv::IReverseSequenceLayer* Network::addReverseSequence(nv::ITensor& input,
                                                       nv::ITensor& sequence_lens) noexcept {
    return add<ReverseSequence>("INetworkDefinition::addReverseSequence", {&input, &sequence_lens});
}

nv::INMSLayer* Network::addNMS(nv::ITensor& boxes, nv::ITensor& scores,
                               nv::ITensor& max_output_boxes_per_class,
                               nv::DataType indices_type) noexcept {
    return add<NmsLayer>("INetworkDefinition::addNMS",
                         {&boxes, &scores, &max_output_boxes_per_class}, indices_type);
}

} // namespace ingot::api
