// SPDX-License-Identifier: Apache-2.0
// Layer builders of elementwise operators.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"
#include "onnx/ops/support/inputs.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace ingot::api {

namespace {

using A = nv::ActivationType;

/// A parameter of an activation: an attribute with its default, or a number.
struct Number {
    std::string_view attribute;
    double value = 0;
};
struct ActivationRow {
    A type;
    Number alpha;
    Number beta;
};

const std::map<std::string_view, ActivationRow> activations = {
    {"Relu", {A::kRELU, {}, {}}},
    {"Sigmoid", {A::kSIGMOID, {}, {}}},
    {"Tanh", {A::kTANH, {}, {}}},
    {"LeakyRelu", {A::kLEAKY_RELU, {"alpha", 0.01}, {}}},
    {"Elu", {A::kELU, {"alpha", 1}, {}}},
    {"Selu",
     {A::kSELU, {"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}},
    {"Softsign", {A::kSOFTSIGN, {}, {}}},
    {"Softplus", {A::kSOFTPLUS, {"", 1}, {"", 1}}},
    {"HardSigmoid", {A::kHARD_SIGMOID, {"alpha", 0.2}, {"beta", 0.5}}},
    {"ThresholdedRelu", {A::kTHRESHOLDED_RELU, {"alpha", 1}, {}}},
    {"Gelu", {A::kGELU_ERF, {}, {}}},
};

float number(const NodeView& r, const Number& p) {
    return static_cast<float>(p.attribute.empty() ? p.value : r.c.f(p.attribute, p.value));
}

using U = nv::UnaryOperation;
const std::map<std::string_view, U> unaries = {
    {"Exp", U::kEXP},     {"Log", U::kLOG},   {"Sqrt", U::kSQRT},   {"Reciprocal", U::kRECIP},
    {"Abs", U::kABS},     {"Neg", U::kNEG},   {"Sin", U::kSIN},     {"Cos", U::kCOS},
    {"Tan", U::kTAN},     {"Sinh", U::kSINH}, {"Cosh", U::kCOSH},   {"Asin", U::kASIN},
    {"Acos", U::kACOS},   {"Atan", U::kATAN}, {"Asinh", U::kASINH}, {"Acosh", U::kACOSH},
    {"Atanh", U::kATANH}, {"Ceil", U::kCEIL}, {"Floor", U::kFLOOR}, {"Erf", U::kERF},
    {"Not", U::kNOT},     {"Sign", U::kSIGN}, {"Round", U::kROUND}, {"IsInf", U::kISINF},
    {"IsNaN", U::kISNAN},
};

using B = nv::ElementWiseOperation;
const std::map<std::string_view, B> binaries = {
    {"Add", B::kSUM},   {"Sum", B::kSUM},         {"Mul", B::kPROD}, {"Max", B::kMAX},
    {"Min", B::kMIN},   {"Sub", B::kSUB},         {"Div", B::kDIV},  {"Pow", B::kPOW},
    {"And", B::kAND},   {"Or", B::kOR},           {"Xor", B::kXOR},  {"Equal", B::kEQUAL},
    {"Less", B::kLESS}, {"Greater", B::kGREATER},
};

} // namespace

nv::ILayer* build_activation(const NodeView& r) {
    const ActivationRow& row = activations.at(r.c.node.op_type);
    A type = row.type;
    if (type == A::kGELU_ERF && r.c.s("approximate", "none") == "tanh") {
        type = A::kGELU_TANH;
    }
    nv::IActivationLayer* layer = r.n.addActivation(r.tensor(0), type);
    if (layer != nullptr) {
        layer->setAlpha(number(r, row.alpha));
        layer->setBeta(number(r, row.beta));
    }
    return layer;
}

nv::ILayer* build_clip(const NodeView& r) {
    constexpr double most = std::numeric_limits<float>::max();
    std::array<double, 2> bounds = {-most, most};
    for (int i = 0; i < 2; ++i) {
        auto& bound = bounds.at(static_cast<size_t>(i));
        if (r.c.opset < 11) {
            bound = r.c.f(i == 0 ? "min" : "max", bound);
        } else if (r.c.has(i + 1)) {
            std::optional<double> known = r.constant_number(i + 1);
            if (!known) {
                return nullptr;
            }
            bound = *known;
        }
        // Bounds are floats, which cannot hold integers near the ends of their types.
        if (!is_float(r.c.dtype(0)) && std::abs(bound) >= 0x1p24) {
            return nullptr;
        }
    }
    nv::IActivationLayer* layer = r.n.addActivation(r.tensor(0), A::kCLIP);
    if (layer != nullptr) {
        layer->setAlpha(static_cast<float>(bounds[0]));
        layer->setBeta(static_cast<float>(bounds[1]));
    }
    return layer;
}

// Before opset 7, a slope per channel has one dimension.
nv::ILayer* build_prelu(const NodeView& r) {
    if (r.c.opset < 7) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    return r.n.addParametricReLU(x, r.tensor(1));
}

nv::ILayer* build_unary(const NodeView& r) {
    bool all = r.c.i("detect_negative", 1) != 0 && r.c.i("detect_positive", 1) != 0;
    return all ? r.n.addUnary(r.tensor(0), unaries.at(r.c.node.op_type)) : nullptr;
}

nv::ILayer* build_binary(const NodeView& r) {
    if (r.c.input_count() == 1) {
        return r.n.addIdentity(r.tensor(0));
    }
    if (r.c.input_count() != 2 || r.c.i("broadcast", 0) != 0) {
        return nullptr;
    }
    nv::ITensor& a = r.tensor(0);
    return r.n.addElementWise(a, r.tensor(1), binaries.at(r.c.node.op_type));
}

nv::ILayer* build_where(const NodeView& r) {
    nv::ITensor& condition = r.tensor(0);
    nv::ITensor& yes = r.tensor(1);
    return r.n.addSelect(condition, yes, r.tensor(2));
}

nv::ILayer* build_cast(const NodeView& r) {
    DType to =
        r.c.node.op_type == "Cast" ? onnx::dtype_attribute(r.c, "to", DType::F32) : r.c.dtype(1);
    bool fits = has_name(to) && bit_width(to) >= 8 && r.c.i("saturate", 1) != 0;
    return fits ? r.n.addCast(r.tensor(0), data_type_of(to)) : nullptr;
}

nv::ILayer* build_identity(const NodeView& r) {
    return r.c.wants(1) ? nullptr : r.n.addIdentity(r.tensor(0));
}

} // namespace ingot::api
