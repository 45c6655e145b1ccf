// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/activations.h"

#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace ingot::onnx {

namespace {

struct Row {
    std::string_view name;
    int parameters;
    double alpha;
    double beta;
    Value (*build)(ingot::Graph& g, Value x, double alpha, double beta);
};

Value constant_like(ingot::Graph& g, Value x, double v) {
    return ops::scalar(g, g.type(x).dtype, v);
}

Value if_negative(ingot::Graph& g, Value x, Value negative) {
    return ops::select(g, ops::less(g, x, constant_like(g, x, 0)), negative, x);
}

Value clamp(ingot::Graph& g, Value x, double low, double high) {
    return ops::maximum(g, ops::minimum(g, x, high), low);
}

const Row rows[] = {
    {"relu", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) { return ops::maximum(g, x, 0.0); }},
    {"tanh", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) { return ops::unary(g, ExprOp::Tanh, x); }},
    {"sigmoid", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) { return ops::unary(g, ExprOp::Sigmoid, x); }},
    {"affine", 2, 1, 0,
     [](ingot::Graph& g, Value x, double a, double b) {
         return ops::add(g, ops::mul(g, x, a), b);
     }},
    {"leakyrelu", 1, 0.01, 0,
     [](ingot::Graph& g, Value x, double a, double) {
         return if_negative(g, x, ops::mul(g, x, a));
     }},
    {"thresholdedrelu", 1, 1, 0,
     [](ingot::Graph& g, Value x, double a, double) {
         Value above = ops::less(g, constant_like(g, x, a), x);
         return ops::select(g, above, x, constant_like(g, x, 0));
     }},
    {"scaledtanh", 2, 1, 1,
     [](ingot::Graph& g, Value x, double a, double b) {
         return ops::mul(g, ops::unary(g, ExprOp::Tanh, ops::mul(g, x, b)), a);
     }},
    {"hardsigmoid", 2, 0.2, 0.5,
     [](ingot::Graph& g, Value x, double a, double b) {
         return clamp(g, ops::add(g, ops::mul(g, x, a), b), 0, 1);
     }},
    {"hardswish", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) {
         Value gate = ops::add(g, ops::mul(g, x, 1.0 / 6), 0.5);
         return ops::mul(g, x, clamp(g, gate, 0, 1));
     }},
    {"elu", 1, 1, 0,
     [](ingot::Graph& g, Value x, double a, double) {
         return if_negative(g, x, ops::mul(g, ops::unary(g, ExprOp::Expm1, x), a));
     }},
    {"selu", 2, 1.67326319217681884765625, 1.05070102214813232421875,
     [](ingot::Graph& g, Value x, double a, double gamma) {
         return ops::mul(g, if_negative(g, x, ops::mul(g, ops::unary(g, ExprOp::Expm1, x), a)),
                         gamma);
     }},
    {"softsign", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) {
         return ops::div(g, x, ops::add(g, ops::unary(g, ExprOp::Abs, x), 1.0));
     }},
    {"softplus", 0, 0, 0,
     [](ingot::Graph& g, Value x, double, double) {
         Value small = ops::unary(g, ExprOp::Neg, ops::unary(g, ExprOp::Abs, x));
         Value tail = ops::unary(g, ExprOp::Log1p, ops::exp(g, small));
         return ops::add(g, ops::maximum(g, x, 0.0), tail);
     }},
    {"clip", 2, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max(),
     [](ingot::Graph& g, Value x, double a, double b) { return clamp(g, x, a, b); }},
};

const Row* find_row(std::string_view name) {
    for (const Row& r : rows) {
        if (r.name == name) {
            return &r;
        }
    }
    return nullptr;
}

std::string lower(std::string s) {
    std::transform(s.begin(), s.end(), s.begin(),
                   [](unsigned char x) { return static_cast<char>(std::tolower(x)); });
    return s;
}

} // namespace

int parameter_count(const NodeContext& c, const std::string& name) {
    const Row* r = find_row(lower(name));
    if (r == nullptr) {
        c.refuse(RefusalKind::Attribute, "activation '", name, "' is not known");
    }
    return r->parameters;
}

Activation activation(const NodeContext& c, const std::string& name) {
    parameter_count(c, name);
    const Row* r = find_row(lower(name));
    return {std::string(r->name), r->alpha, r->beta};
}

Value apply(ingot::Graph& g, const Activation& a, Value x) {
    const Row* r = find_row(a.name);
    CHECK(r != nullptr, "activation '", a.name, "' was not checked");
    return r->build(g, x, a.alpha, a.beta);
}

Value fused_activation(NodeContext& c, Value x) {
    std::string name = c.s("activation", "");
    if (name.empty()) {
        return x;
    }
    Activation a = activation(c, name);
    std::vector<double> parameters = c.floats("activation_params");
    if (!parameters.empty()) {
        a.alpha = parameters[0];
        a.beta = parameters.size() > 1 ? parameters[1] : a.beta;
    }
    a.alpha = c.f("activation_alpha", a.alpha);
    a.beta = c.f(a.name == "selu" ? "activation_gamma" : "activation_beta", a.beta);
    return apply(c.g, a, x);
}

} // namespace ingot::onnx
