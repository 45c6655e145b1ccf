// SPDX-License-Identifier: Apache-2.0
// Elementwise layers: activation, parametric ReLU, element-wise, unary, scale, select, cast,
// identity.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

namespace ingot::api {

namespace {

// --- activation ----------------------------------------------------------------------------------

class Activation final : public Layer<nv::IActivationLayer> {
public:
    explicit Activation(nv::ActivationType type)
        : Layer({nv::LayerType::kACTIVATION, "Activation"}, 1),
          type_(checked(type, "the activation type")) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        bool integers = type_ == nv::ActivationType::kRELU || type_ == nv::ActivationType::kCLIP;
        if (integers) {
            expect_number(*this, in, 0);
        } else {
            expect_float(*this, in, 0);
        }
    }
    Values emit(const Emitter& e) override {
        using T = nv::ActivationType;
        Value x = e.in[0];
        double a = static_cast<double>(alpha_);
        double b = static_cast<double>(beta_);
        switch (type_) {
        case T::kRELU:
            return {e.onnx1("Relu", {x})};
        case T::kSIGMOID:
            return {e.onnx1("Sigmoid", {x})};
        case T::kTANH:
            return {e.onnx1("Tanh", {x})};
        case T::kLEAKY_RELU:
            return {e.onnx1("LeakyRelu", {x}, {attribute("alpha", a)})};
        case T::kELU:
            return {e.onnx1("Elu", {x}, {attribute("alpha", a)})};
        case T::kSELU:
            return {e.onnx1("Selu", {x}, {attribute("alpha", a), attribute("gamma", b)})};
        case T::kSOFTSIGN:
            return {e.onnx1("Softsign", {x})};
        case T::kSOFTPLUS: // a log(exp(b x) + 1)
            return {ops::mul(e.g, e.onnx1("Softplus", {ops::mul(e.g, x, b)}), a)};
        case T::kCLIP:
            return {ops::maximum(e.g, ops::minimum(e.g, x, b), a)};
        case T::kHARD_SIGMOID:
            return {e.onnx1("HardSigmoid", {x}, {attribute("alpha", a), attribute("beta", b)})};
        case T::kSCALED_TANH:
            return {ops::mul(e.g, e.onnx1("Tanh", {ops::mul(e.g, x, b)}), a)};
        case T::kTHRESHOLDED_RELU:
            return {e.onnx1("ThresholdedRelu", {x}, {attribute("alpha", a)})};
        case T::kGELU_ERF:
            return {ops::gelu(e.g, x, false)};
        case T::kGELU_TANH:
            return {ops::gelu(e.g, x, true)};
        }
        fail(ErrorCode::Internal, "activation type ", static_cast<int64_t>(type_));
    }

    INGOT_ENUM_SETTING(IActivationLayer, nv::ActivationType, ActivationType, type_, {},
                       "the activation type")
    INGOT_SETTING(float, Alpha, alpha_, 0)
    INGOT_SETTING(float, Beta, beta_, 0)
};

class ParametricRelu final : public Layer<nv::IParametricReLULayer> {
public:
    ParametricRelu() : Layer({nv::LayerType::kPARAMETRIC_RELU, "Parametric ReLU"}, 1) {}

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_same_dtype(*this, in, 0, 1);
        expect_broadcast(*this, in, {0, 1});
    }
    Values emit(const Emitter& e) override { return {e.onnx1("PRelu", {e.in[0], e.in[1]})}; }
};

// --- element-wise --------------------------------------------------------------------------------

class ElementWise final : public Layer<nv::IElementWiseLayer> {
public:
    explicit ElementWise(nv::ElementWiseOperation op)
        : Layer({nv::LayerType::kELEMENTWISE, "ElementWise"}, 1),
          op_(checked(op, "the operation")) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        using Op = nv::ElementWiseOperation;
        bool logical = op_ == Op::kAND || op_ == Op::kOR || op_ == Op::kXOR;
        for (size_t i = 0; i < 2; ++i) {
            if (logical) {
                expect_dtype(*this, in, i, {DType::Bool});
            } else if (op_ != Op::kEQUAL) {
                expect_number(*this, in, i);
            }
        }
        expect_same_dtype(*this, in, 0, 1);
        expect_broadcast(*this, in, {0, 1});
    }
    Values emit(const Emitter& e) override {
        using Op = nv::ElementWiseOperation;
        Graph& g = e.g;
        Value a = e.in[0];
        Value b = e.in[1];
        switch (op_) {
        case Op::kSUM:
            return {ops::add(g, a, b)};
        case Op::kPROD:
            return {ops::mul(g, a, b)};
        case Op::kMAX:
            return {ops::maximum(g, a, b)};
        case Op::kMIN:
            return {ops::minimum(g, a, b)};
        case Op::kSUB:
            return {ops::sub(g, a, b)};
        case Op::kDIV:
            return {ops::div(g, a, b)};
        case Op::kPOW:
            return {ops::binary(g, ExprOp::Pow, a, b)};
        case Op::kFLOOR_DIV:
            return {floor_div(g, a, b)};
        case Op::kAND:
            return {ops::binary(g, ExprOp::And, a, b)};
        case Op::kOR:
            return {ops::binary(g, ExprOp::Or, a, b)};
        case Op::kXOR:
            return {ops::binary(g, ExprOp::Xor, a, b)};
        case Op::kEQUAL:
            return {ops::equal(g, a, b)};
        case Op::kGREATER:
            return {ops::less(g, b, a)};
        case Op::kLESS:
            return {ops::less(g, a, b)};
        }
        fail(ErrorCode::Internal, "operation ", static_cast<int64_t>(op_));
    }

    INGOT_ENUM_SETTING(IElementWiseLayer, nv::ElementWiseOperation, Operation, op_, {},
                       "the operation")

private:
    // Integers: subtracts the remainder first, so that the division is exact. The result is a known
    // size where both operands are.
    static Value floor_div(Graph& g, Value a, Value b) {
        if (is_float(g.type(a).dtype)) {
            return ops::unary(g, ExprOp::Floor, ops::div(g, a, b));
        }
        return ops::div(g, ops::sub(g, a, ops::binary(g, ExprOp::Mod, a, b)), b);
    }
};

class Unary final : public Layer<nv::IUnaryLayer> {
public:
    explicit Unary(nv::UnaryOperation op)
        : Layer({nv::LayerType::kUNARY, "Unary"}, 1), op_(checked(op, "the operation")) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        using Op = nv::UnaryOperation;
        if (op_ == Op::kNOT) {
            expect_dtype(*this, in, 0, {DType::Bool});
        } else if (op_ == Op::kABS || op_ == Op::kNEG || op_ == Op::kSIGN) {
            expect_number(*this, in, 0);
        } else {
            expect_float(*this, in, 0);
        }
    }
    Values emit(const Emitter& e) override {
        using Op = nv::UnaryOperation;
        if (op_ == Op::kRECIP) {
            return {e.onnx1("Reciprocal", {e.in[0]})};
        }
        constexpr std::array<ExprOp, 25> by_number = {
            ExprOp::Exp,   ExprOp::Log,   ExprOp::Sqrt,  ExprOp::Div,   ExprOp::Abs,
            ExprOp::Neg,   ExprOp::Sin,   ExprOp::Cos,   ExprOp::Tan,   ExprOp::Sinh,
            ExprOp::Cosh,  ExprOp::Asin,  ExprOp::Acos,  ExprOp::Atan,  ExprOp::Asinh,
            ExprOp::Acosh, ExprOp::Atanh, ExprOp::Ceil,  ExprOp::Floor, ExprOp::Erf,
            ExprOp::Not,   ExprOp::Sign,  ExprOp::Round, ExprOp::IsInf, ExprOp::IsNan};
        return {ops::unary(e.g, by_number[static_cast<size_t>(op_)], e.in[0])};
    }

    INGOT_ENUM_SETTING(IUnaryLayer, nv::UnaryOperation, Operation, op_, {}, "the operation")
};

// --- scale ---------------------------------------------------------------------------------------

class ScaleLayer final : public Layer<nv::IScaleLayer> {
public:
    ScaleLayer(nv::ScaleMode mode, nv::Weights shift, nv::Weights scale, nv::Weights power,
               std::optional<int32_t> axis)
        : Layer({nv::LayerType::kSCALE, "Scale"}, 1), mode_(checked(mode, "the mode")),
          shift_(shift), scale_(scale), power_(power), axis_(axis) {
        check_weights(shift, "the shift weights");
        check_weights(scale, "the scale weights");
        check_weights(power, "the power weights");
    }

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        if (in[0] && mode_ != nv::ScaleMode::kUNIFORM) {
            int64_t axis = axis_of(in[0]->rank());
            require(axis >= 0 && axis < in[0]->rank(), ErrorCode::InvalidArgument,
                    "the channel axis is ", axis, ", but input 0 ", inputs[0]->quoted(), " is ",
                    *in[0]);
        }
    }
    std::vector<nv::Weights> all_weights() const override { return {shift_, scale_, power_}; }
    Values emit(const Emitter& e) override {
        Value y = e.in[0];
        auto step = [&](const nv::Weights& w, ExprOp op, std::string_view what) {
            if (!is_empty(w)) {
                y = ops::binary(e.g, op, y, parameter(e, w, what));
            }
        };
        step(scale_, ExprOp::Mul, "the scale weights");
        step(shift_, ExprOp::Add, "the shift weights");
        step(power_, ExprOp::Pow, "the power weights");
        return {y};
    }
    int32_t getChannelAxis() const noexcept override {
        return static_cast<int32_t>(
            axis_of(inputs[0] == nullptr ? 0 : inputs[0]->getDimensions().nbDims));
    }
    void setChannelAxis(int32_t axis) noexcept override {
        change("IScaleLayer::setChannelAxis", [&] {
            require(axis >= 0 && axis < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                    "the channel axis is ", axis, ", expected 0 to ", nv::Dims::MAX_DIMS - 1);
            axis_ = axis;
        });
    }

    INGOT_ENUM_SETTING(IScaleLayer, nv::ScaleMode, Mode, mode_, {}, "the mode")
    INGOT_CHECKED_SETTING(IScaleLayer, nv::Weights, nv::Weights, Shift, shift_, {},
                          check_weights(v, "the shift weights"))
    INGOT_CHECKED_SETTING(IScaleLayer, nv::Weights, nv::Weights, Scale, scale_, {},
                          check_weights(v, "the scale weights"))
    INGOT_CHECKED_SETTING(IScaleLayer, nv::Weights, nv::Weights, Power, power_, {},
                          check_weights(v, "the power weights"))

private:
    int64_t axis_of(int64_t rank) const { return axis_ ? *axis_ : std::max<int64_t>(0, rank - 3); }
    Value parameter(const Emitter& e, const nv::Weights& w, std::string_view what) const {
        Shape shape;
        if (mode_ != nv::ScaleMode::kUNIFORM) {
            const Dims& d = e.dims(0);
            for (auto i = static_cast<size_t>(axis_of(e.rank(0))); i < d.size(); ++i) {
                bool used = shape.empty() || mode_ == nv::ScaleMode::kELEMENTWISE;
                require(!used || d[i].is_const(), ErrorCode::InvalidArgument, "dimension ", i,
                        " of input 0 ", inputs[0]->quoted(), " must be known at build, for ", what);
                shape.push_back(used ? d[i].value() : 1);
            }
        }
        return as_dtype(e.g, e.weights(w, shape, what), e.dtype(0));
    }
    std::optional<int32_t> axis_;
};

// --- select, cast, identity ----------------------------------------------------------------------

class Select final : public Layer<nv::ISelectLayer> {
public:
    Select() : Layer({nv::LayerType::kSELECT, "Select"}, 1) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        expect_dtype(*this, in, 0, {DType::Bool});
        expect_same_dtype(*this, in, 1, 2);
        expect_broadcast(*this, in, {0, 1, 2});
    }
    Values emit(const Emitter& e) override { return {ops::select(e.g, e.in[0], e.in[1], e.in[2])}; }
};

class Cast final : public Layer<nv::ICastLayer> {
public:
    explicit Cast(nv::DataType to) : Layer({nv::LayerType::kCAST, "Cast"}, 1), to_(to) {
        dtype_of(to);
    }

    bool passes_shapes() const override { return true; }
    Values emit(const Emitter& e) override {
        return {ops::cast(e.g, e.in[0], dtype_of(to_), true)};
    }

    INGOT_CHECKED_SETTING(ICastLayer, nv::DataType, nv::DataType, ToType, to_, {}, dtype_of(v))
};

class Identity final : public Layer<nv::IIdentityLayer> {
public:
    Identity() : Layer({nv::LayerType::kIDENTITY, "Identity"}, 1) {}

    bool passes_shapes() const override { return true; }
    Values emit(const Emitter& e) override { return {e.in[0]}; }
};

} // namespace

nv::IActivationLayer* Network::addActivation(nv::ITensor& input, nv::ActivationType type) noexcept {
    return add<Activation>("INetworkDefinition::addActivation", {&input}, type);
}

nv::IParametricReLULayer* Network::addParametricReLU(nv::ITensor& input,
                                                     nv::ITensor& slope) noexcept {
    return add<ParametricRelu>("INetworkDefinition::addParametricReLU", {&input, &slope});
}

nv::IElementWiseLayer* Network::addElementWise(nv::ITensor& input1, nv::ITensor& input2,
                                               nv::ElementWiseOperation op) noexcept {
    return add<ElementWise>("INetworkDefinition::addElementWise", {&input1, &input2}, op);
}

nv::IUnaryLayer* Network::addUnary(nv::ITensor& input, nv::UnaryOperation operation) noexcept {
    return add<Unary>("INetworkDefinition::addUnary", {&input}, operation);
}

nv::IScaleLayer* Network::addScale(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                                   nv::Weights scale, nv::Weights power) noexcept {
    return add<ScaleLayer>("INetworkDefinition::addScale", {&input}, mode, shift, scale, power,
                           std::optional<int32_t>());
}

nv::IScaleLayer* Network::addScaleNd(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                                     nv::Weights scale, nv::Weights power,
                                     int32_t channel_axis) noexcept {
    return add<ScaleLayer>("INetworkDefinition::addScaleNd", {&input}, mode, shift, scale, power,
                           std::optional(channel_axis));
}

nv::ISelectLayer* Network::addSelect(nv::ITensor& condition, nv::ITensor& then_input,
                                     nv::ITensor& else_input) noexcept {
    return add<Select>("INetworkDefinition::addSelect", {&condition, &then_input, &else_input});
}

nv::ICastLayer* Network::addCast(nv::ITensor& input, nv::DataType to_type) noexcept {
    return add<Cast>("INetworkDefinition::addCast", {&input}, to_type);
}

nv::IIdentityLayer* Network::addIdentity(nv::ITensor& input) noexcept {
    return add<Identity>("INetworkDefinition::addIdentity", {&input});
}

} // namespace ingot::api
