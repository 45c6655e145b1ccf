// SPDX-License-Identifier: Apache-2.0
// Quantisation by given scales, and by computed scales.
#include "api/tensorrt/layers/blocks.h"
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"

#include <algorithm>

namespace ingot::api {

namespace {

bool is_quantised(nv::DataType t) {
    return t == nv::DataType::kINT8 || t == nv::DataType::kUINT8 || t == nv::DataType::kFP8 ||
           t == nv::DataType::kINT4 || t == nv::DataType::kFP4;
}

void check_quantised(nv::DataType t) {
    require(is_quantised(t), ErrorCode::InvalidArgument, "the type is ", name_of(t),
            ", expected INT8, UINT8, FP8, INT4 or FP4");
}

void check_float_type(nv::DataType t) {
    require(t == nv::DataType::kFLOAT || t == nv::DataType::kHALF || t == nv::DataType::kBF16,
            ErrorCode::InvalidArgument, "the type is ", name_of(t),
            ", expected FLOAT, HALF or BF16");
}

void check_block(const nv::Dims& b) {
    for (int64_t d : numbers_of(b, "the block")) {
        require(d >= 1 || d == -1, ErrorCode::InvalidArgument, "the block is ", text_of(b),
                ", expected sizes of 1 or more, or -1");
    }
}

// A scale in the form of ops::quantize: a scalar, a list along an axis, or one per block along it.
struct Spread {
    Value scale;
    int64_t axis = 1;
    int64_t block = 0;
};

// Blocks along several axes become blocks along the last of them; the scales are repeated along the
// others.
Spread blocked(const Emitter& e, const nv::Dims& block, Value scale) {
    const Dims x = e.dims(0);
    Spread out{scale, 0, 0};
    int64_t last = -1;
    std::vector<int64_t> sizes(x.size(), 1);
    for (size_t i = 0; i < x.size(); ++i) {
        const Dim& n = ops::dims(e.g, scale)[i];
        if (block.nbDims > 0 && block.d[i] > 0) {
            sizes[i] = block.d[i];
        } else if (!(n == x[i]) && n.is_const() && x[i].is_const()) {
            require(n.value() > 0 && x[i].value() % n.value() == 0, ErrorCode::InvalidArgument,
                    "input 1 ", e.layer.inputs[1]->quoted(), " is ", e.type(1), ": ", n,
                    " scales do not divide dimension ", i, " of input 0, which is ", e.type(0));
            sizes[i] = x[i].value() / n.value();
        }
        last = sizes[i] > 1 ? static_cast<int64_t>(i) : last;
    }
    for (size_t i = 0; last >= 0 && i < x.size(); ++i) {
        if (sizes[i] > 1 && static_cast<int64_t>(i) != last) {
            Value v = ops::unsqueeze(e.g, out.scale, {static_cast<int64_t>(i) + 1});
            Dims d = ops::dims(e.g, v);
            d[i + 1] = sizes[i];
            v = ops::broadcast_to(e.g, v, d);
            Dims flat = ops::dims(e.g, out.scale);
            flat[i] = flat[i] * Dim(sizes[i]);
            out.scale =
                ops::slice(e.g, ops::reshape(e.g, v, flat), static_cast<int64_t>(i), 0, x[i]);
        }
    }
    out.axis = std::max<int64_t>(last, 0);
    out.block = last >= 0 ? sizes[static_cast<size_t>(last)] : 1;
    return out;
}

template <class Interface>
class Quantising : public Layer<Interface> {
public:
    Quantising(LayerKind kind, nv::DataType to) : Layer<Interface>(kind, 1), target(to) {}

    size_t input_limit() const override { return 3; }
    bool setBlockShape(const nv::Dims& v) noexcept override {
        return this->change("IQuantizeLayer::setBlockShape", [&] {
            check_block(v);
            int32_t rank = this->inputs[0]->getDimensions().nbDims;
            require(v.nbDims == 0 || v.nbDims == rank, ErrorCode::InvalidArgument, "the block is ",
                    text_of(v), ", expected ", rank, " sizes");
            blocks = v;
        });
    }
    nv::Dims getBlockShape() const noexcept override { return blocks; }
    int32_t getAxis() const noexcept override { return scale_axis; }
    void setAxis(int32_t axis) noexcept override {
        this->change("IQuantizeLayer::setAxis", [&] {
            require(axis >= -1 && axis < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                    "the axis is ", axis, ", expected -1 to ", nv::Dims::MAX_DIMS - 1);
            scale_axis = axis;
        });
    }
    nv::DataType getToType() const noexcept override { return target; }
    std::vector<LayerBase::Unused> unused_settings() const override {
        int32_t rank = this->inputs[0]->getDimensions().nbDims;
        bool used = rank > 1 && this->inputs[1]->getDimensions().nbDims == rank;
        if (blocks.nbDims == 0 || used) {
            return {};
        }
        return {{this->type() == nv::LayerType::kQUANTIZE ? "IQuantizeLayer::setBlockShape"
                                                          : "IDequantizeLayer::setBlockShape",
                 "the scale has not as many axes as the input, so that it is not one for each "
                 "block"}};
    }

protected:
    Spread spread(const Emitter& e) const {
        if (e.has(2)) {
            const Tensor* zero = e.g.constant(e.in[2]);
            require(zero != nullptr, ErrorCode::InvalidArgument, "input 2 ",
                    this->inputs[2]->quoted(), ", the zero point, must be a constant");
            for (int64_t i = 0; i < zero->count(); ++i) {
                require(zero->get_f64(i) == 0, ErrorCode::InvalidArgument, "input 2 ",
                        this->inputs[2]->quoted(), ", the zero point, is not all 0");
            }
        }
        if (e.rank(1) == e.rank(0) && e.rank(0) > 1) {
            return blocked(e, blocks, e.in[1]);
        }
        int64_t axis = std::max(scale_axis, 0);
        bool scalar = e.rank(1) == 0 || (e.rank(1) == 1 && e.dims(1)[0].is_const(1));
        require(scalar || scale_axis >= 0 || e.rank(0) == 1, ErrorCode::InvalidArgument, "input 1 ",
                this->inputs[1]->quoted(), " is ", e.type(1),
                ", but no axis is set; set one with setAxis()");
        require(scalar || axis < e.rank(0), ErrorCode::InvalidArgument, "the axis is ", axis,
                ", but input 0 ", this->inputs[0]->quoted(), " is ", e.type(0));
        return {e.in[1], axis, 0};
    }
    nv::DataType target;
    nv::Dims blocks{};
    int32_t scale_axis = -1;
};

class QuantizeLayer final : public Quantising<nv::IQuantizeLayer> {
public:
    explicit QuantizeLayer(nv::DataType to)
        : Quantising({nv::LayerType::kQUANTIZE, "Quantize"}, to) {
        check_quantised(to);
    }
    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_float(*this, in, 1);
    }
    Values emit(const Emitter& e) override {
        Spread s = spread(e);
        ops::Quantize q{s.axis, s.block, dtype_of(target), true};
        return {ops::quantize(e.g, q, e.in[0], as_dtype(e.g, s.scale, e.dtype(0)))};
    }
    void setToType(nv::DataType to) noexcept override {
        change("IQuantizeLayer::setToType", [&] {
            check_quantised(to);
            target = to;
        });
    }
};

class DequantizeLayer final : public Quantising<nv::IDequantizeLayer> {
public:
    explicit DequantizeLayer(nv::DataType to)
        : Quantising({nv::LayerType::kDEQUANTIZE, "Dequantize"}, to) {
        check_float_type(to);
    }
    void check(const InputTypes& in) const override {
        if (in[0]) {
            expect_dtype(
                *this, in, 0,
                {DType::I8, DType::U8, DType::F8E4M3, DType::I4, DType::F4E2M1, DType::I32});
        }
        expect_float(*this, in, 1);
    }
    Values emit(const Emitter& e) override {
        Spread s = spread(e);
        ops::Dequantize d{s.axis, s.block, dtype_of(target)};
        return {ops::dequantize(e.g, d, e.in[0], as_dtype(e.g, s.scale, dtype_of(target)))};
    }
    void setToType(nv::DataType to) noexcept override {
        change("IDequantizeLayer::setToType", [&] {
            check_float_type(to);
            target = to;
        });
    }
};

class DynamicQuantizeLayer final : public Layer<nv::IDynamicQuantizeLayer> {
public:
    DynamicQuantizeLayer(const nv::Dims& block, nv::DataType to, nv::DataType scale)
        : Layer({nv::LayerType::kDYNAMIC_QUANTIZE, "DynamicQuantize"}, 2), to_(to), scale_(scale),
          block_(block) {
        check_block_type(to);
        check_block_scale_type(scale);
        check_block(block);
    }

    size_t input_limit() const override { return 2; }
    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_float(*this, in, 1);
        expect_rank(*this, in, 1, 0, 0);
    }
    Values emit(const Emitter& e) override {
        Graph& g = e.g;
        int64_t axis = 0;
        int64_t size = one_block(e, axis);
        const Dims x = e.dims(0);
        const Dim& length = x[static_cast<size_t>(axis)];
        require(length.is_const() && length.value() % size == 0, ErrorCode::InvalidArgument,
                "dimension ", axis, " of input 0 ", inputs[0]->quoted(), ", which is ", e.type(0),
                ", does not divide into blocks of ", size);
        Value second = e.has(1) ? e.in[1] : Value{};
        QuantizedBlocks q = quantize_blocks(g, e.in[0], {axis, size, to_, scale_}, second);
        return {q.elements, q.stored_scales};
    }
    void setBlockShape(const nv::Dims& v) noexcept override {
        change("IDynamicQuantizeLayer::setBlockShape", [&] {
            check_block(v);
            block_ = v;
        });
    }
    nv::Dims getBlockShape() const noexcept override { return block_; }
    void setAxis(int32_t axis) noexcept override {
        change("IDynamicQuantizeLayer::setAxis", [&] { along(axis, getBlockSize()); });
    }
    int32_t getAxis() const noexcept override {
        for (int32_t i = 0; i < block_.nbDims; ++i) {
            if (block_.d[i] != 1) {
                return i;
            }
        }
        return block_.nbDims - 1;
    }
    void setBlockSize(int32_t size) noexcept override {
        change("IDynamicQuantizeLayer::setBlockSize", [&] { along(getAxis(), size); });
    }
    int32_t getBlockSize() const noexcept override {
        int32_t axis = getAxis();
        return axis < 0 ? 1 : static_cast<int32_t>(block_.d[axis]);
    }

    INGOT_CHECKED_SETTING(IDynamicQuantizeLayer, nv::DataType, nv::DataType, ToType, to_, {},
                          check_block_type(v))
    INGOT_CHECKED_SETTING(IDynamicQuantizeLayer, nv::DataType, nv::DataType, ScaleType, scale_, {},
                          check_block_scale_type(v))

private:
    void along(int32_t axis, int64_t size) {
        require(axis >= 0 && axis < block_.nbDims, ErrorCode::InvalidArgument, "the axis is ", axis,
                ", expected 0 to ", block_.nbDims - 1);
        require(size >= 1, ErrorCode::InvalidArgument, "the block size is ", size,
                ", expected 1 or more");
        std::fill(block_.d, block_.d + block_.nbDims, 1);
        block_.d[axis] = size;
    }
    int64_t one_block(const Emitter& e, int64_t& axis) const {
        require(block_.nbDims == e.rank(0), ErrorCode::InvalidArgument, "the block is ",
                text_of(block_), ", but input 0 ", inputs[0]->quoted(), " is ", e.type(0));
        int64_t axes = 0;
        int64_t size = 1;
        for (int64_t i = 0; i < e.rank(0); ++i) {
            if (block_.d[i] != 1) {
                const Dim& d = e.dims(0)[static_cast<size_t>(i)];
                ++axes;
                axis = i;
                require(block_.d[i] > 0 || d.is_const(), ErrorCode::InvalidArgument, "dimension ",
                        i, " of input 0 ", inputs[0]->quoted(), " must be known at build");
                size = block_.d[i] > 0 ? block_.d[i] : d.value();
            }
        }
        require(axes == 1, ErrorCode::Unsupported, "the block is ", text_of(block_),
                ": blocks along one axis are supported");
        return size;
    }
    nv::Dims block_;
};

nv::Dims block_along(int32_t axis, int32_t size, int32_t rank) {
    nv::Dims d{rank, {}};
    std::fill(d.d, d.d + std::max(rank, 0), 1);
    if (axis >= 0 && axis < rank) {
        d.d[axis] = size;
    }
    return d;
}

} // namespace

void check_block_type(nv::DataType t) {
    require(t == nv::DataType::kFP4 || t == nv::DataType::kFP8, ErrorCode::InvalidArgument,
            "the type is ", name_of(t), ", expected FP4 or FP8");
}

void check_block_scale_type(nv::DataType t) {
    require(t != nv::DataType::kE8M0, ErrorCode::Unsupported,
            "scales of type E8M0 are not supported; take FP8");
    require(t == nv::DataType::kFP8 || t == nv::DataType::kFLOAT, ErrorCode::InvalidArgument,
            "the type of scales is ", name_of(t), ", expected FP8 or FLOAT");
}

QuantizedBlocks quantize_blocks(Graph& g, Value x, const BlockQuantization& how, Value second) {
    const Dims dims = g.type(x).dims;
    Dims split = dims;
    split[static_cast<size_t>(how.axis)] = dims[static_cast<size_t>(how.axis)].value() / how.size;
    const Dims scales = split;
    split.insert(split.begin() + how.axis + 1, Dim(how.size));
    Value wide = as_dtype(g, x, DType::F32);
    Value most = ops::reduce_max(g, ops::unary(g, ExprOp::Abs, ops::reshape(g, wide, split)),
                                 {how.axis + 1});
    constexpr double largest_fp4 = 6;
    constexpr double largest_fp8 = 448;
    bool fp4 = how.to == nv::DataType::kFP4;
    Value scale = ops::div(g, most, fp4 ? largest_fp4 : largest_fp8);
    if (second.valid()) {
        second = as_dtype(g, second, DType::F32);
        scale = ops::div(g, scale, second);
    }
    QuantizedBlocks q;
    q.stored_scales = ops::cast(g, scale, dtype_of(how.scale), true);
    Value used = as_dtype(g, q.stored_scales, DType::F32);
    if (second.valid()) {
        used = ops::mul(g, used, second);
    }
    Value zero = ops::scalar(g, DType::F32, 0); // for blocks of zeros
    used = ops::select(g, ops::equal(g, used, zero), ops::scalar(g, DType::F32, 1), used);
    q.scales = ops::reshape(g, used, scales);
    ops::Quantize quantize{how.axis, how.size, dtype_of(how.to), true};
    q.elements = ops::quantize(g, quantize, wide, q.scales);
    return q;
}

nv::IQuantizeLayer* Network::addQuantize(nv::ITensor& input, nv::ITensor& scale,
                                         nv::DataType output_type) noexcept {
    return add<QuantizeLayer>("INetworkDefinition::addQuantize", {&input, &scale}, output_type);
}

nv::IDequantizeLayer* Network::addDequantize(nv::ITensor& input, nv::ITensor& scale,
                                             nv::DataType output_type) noexcept {
    return add<DequantizeLayer>("INetworkDefinition::addDequantize", {&input, &scale}, output_type);
}

nv::IDynamicQuantizeLayer* Network::addDynamicQuantizeV2(nv::ITensor& input,
                                                         const nv::Dims& block_shape,
                                                         nv::DataType output_type,
                                                         nv::DataType scale_type) noexcept {
    return add<DynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantizeV2", {&input},
                                     block_shape, output_type, scale_type);
}

nv::IDynamicQuantizeLayer* Network::addDynamicQuantize(nv::ITensor& input, int32_t axis,
                                                       int32_t block_size, nv::DataType output_type,
                                                       nv::DataType scale_type) noexcept {
    return add<DynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantize", {&input},
                                     block_along(axis, block_size, input.getDimensions().nbDims),
                                     output_type, scale_type);
}

} // namespace ingot::api
