// SPDX-License-Identifier: Apache-2.0
// Activations: one map each, computed in f32 for the small floats.
#include "base/error.h"
#include "onnx/importer.h"

#include <array>

namespace ingot::onnx {

namespace {

// An instruction of a Formula. Numbers are constants and never instructions.
struct Term {
    int at;
};

// The body of a map under construction, with the dtype it computes in.
struct Formula {
    Expr e;
    DType t;

    Term op(ExprOp o, Term a) { return {e.op(o, a.at)}; }
    Term op(ExprOp o, Term a, Term b) { return {e.op(o, a.at, b.at)}; }
    Term op(ExprOp o, Term a, double b) { return op(o, a, constant(b)); }
    Term constant(double v) { return {e.constant(t, v)}; }
    Term select(Term condition, Term a, Term b) { return {e.select(condition.at, a.at, b.at)}; }
    Term less(Term a, double b) { return op(ExprOp::Lt, a, b); }
    Term clamp01(Term a) { return op(ExprOp::Max, op(ExprOp::Min, a, 1.0), 0.0); }
    Term softplus(Term x) {
        Term tail = op(ExprOp::Log1p, op(ExprOp::Exp, op(ExprOp::Neg, op(ExprOp::Abs, x))));
        return op(ExprOp::Add, op(ExprOp::Max, x, 0.0), tail);
    }
};

// build(formula, x) appends the function's instructions; the last one is the result.
template <class Build>
Values activation(NodeContext& c, Build&& build) {
    DType stored = c.dtype(0);
    Formula f{{}, compute_type(stored)};
    build(f, Term{f.e.in(0, stored)});
    return {ops::map(c.g, std::move(f.e), stored, std::array{c.in(0)})};
}

template <ExprOp op>
Values plain(NodeContext& c) {
    return {ops::unary(c.g, op, c.in(0))};
}

Values relu(NodeContext& c) {
    return {ops::maximum(c.g, c.in(0), 0.0)};
}

Values leaky_relu(NodeContext& c) {
    double alpha = c.f("alpha", static_cast<double>(0.01F));
    return activation(c, [&](Formula& f, Term x) {
        Term small = f.op(ExprOp::Mul, x, alpha);
        f.select(f.less(x, 0), small, x);
    });
}

Values elu(NodeContext& c) {
    double alpha = c.f("alpha", 1);
    return activation(c, [&](Formula& f, Term x) {
        Term small = f.op(ExprOp::Mul, f.op(ExprOp::Expm1, x), alpha);
        f.select(f.less(x, 0), small, x);
    });
}

Values selu(NodeContext& c) {
    double alpha = c.f("alpha", 1.67326319217681884765625);
    double gamma = c.f("gamma", 1.05070102214813232421875);
    return activation(c, [&](Formula& f, Term x) {
        Term small = f.op(ExprOp::Mul, f.op(ExprOp::Expm1, x), alpha);
        f.op(ExprOp::Mul, f.select(f.less(x, 0), small, x), gamma);
    });
}

Values celu(NodeContext& c) {
    double alpha = c.f("alpha", 1);
    return activation(c, [&](Formula& f, Term x) {
        Term small = f.op(ExprOp::Mul, f.op(ExprOp::Expm1, f.op(ExprOp::Div, x, alpha)), alpha);
        f.select(f.less(x, 0), small, x);
    });
}

Values prelu_by(NodeContext& c, Value slope) {
    Value x = c.in(0);
    Value scaled = ops::mul(c.g, x, slope);
    Value zero = ops::scalar(c.g, c.dtype(0), 0);
    return {ops::select(c.g, ops::less(c.g, x, zero), scaled, x)};
}

Values prelu(NodeContext& c) {
    return prelu_by(c, c.in(1));
}

// Opset 6: a single slope, or one per channel.
Values prelu6(NodeContext& c) {
    Value slope = c.in(1);
    if (c.rank(0) > 1 && c.rank(1) == 1 && !c.dim(1, 0).is_const(1)) {
        Dims d(static_cast<size_t>(c.rank(0) - 1), Dim(1));
        d[0] = c.dim(1, 0);
        slope = ops::reshape(c.g, slope, d);
    }
    return prelu_by(c, slope);
}

Values thresholded_relu(NodeContext& c) {
    double alpha = c.f("alpha", 1);
    return activation(c, [&](Formula& f, Term x) {
        Term above = f.op(ExprOp::Lt, f.constant(alpha), x);
        f.select(above, x, f.constant(0));
    });
}

Values hard_sigmoid(NodeContext& c) {
    double alpha = c.f("alpha", static_cast<double>(0.2F));
    double beta = c.f("beta", 0.5);
    return activation(c, [&](Formula& f, Term x) {
        f.clamp01(f.op(ExprOp::Add, f.op(ExprOp::Mul, x, alpha), beta));
    });
}

Values hard_swish(NodeContext& c) {
    return activation(c, [&](Formula& f, Term x) {
        Term gate = f.clamp01(f.op(ExprOp::Add, f.op(ExprOp::Mul, x, 1.0 / 6), 0.5));
        f.op(ExprOp::Mul, x, gate);
    });
}

Values softplus(NodeContext& c) {
    return activation(c, [](Formula& f, Term x) { f.softplus(x); });
}

Values softsign(NodeContext& c) {
    return activation(c, [](Formula& f, Term x) {
        f.op(ExprOp::Div, x, f.op(ExprOp::Add, f.op(ExprOp::Abs, x), 1.0));
    });
}

Values mish(NodeContext& c) {
    return activation(
        c, [](Formula& f, Term x) { f.op(ExprOp::Mul, x, f.op(ExprOp::Tanh, f.softplus(x))); });
}

Values sigmoid_gated(NodeContext& c, double alpha) {
    return activation(c, [&](Formula& f, Term x) {
        Term gate = alpha == 1 ? x : f.op(ExprOp::Mul, x, alpha);
        f.op(ExprOp::Mul, x, f.op(ExprOp::Sigmoid, gate));
    });
}

Values swish(NodeContext& c) {
    return sigmoid_gated(c, c.f("alpha", 1));
}

Values quick_gelu(NodeContext& c) {
    return sigmoid_gated(c, c.f("alpha", static_cast<double>(1.702F)));
}

Values swi_glu(NodeContext& c) {
    return {ops::mul(c.g, sigmoid_gated(c, c.f("alpha", 1))[0], c.in(1))};
}

// Integers compute in f32 and are rounded towards zero, as a cast does.
Values shrink(NodeContext& c) {
    double bias = c.f("bias", 0);
    double limit = c.f("lambd", 0.5);
    DType stored = c.dtype(0);
    DType t = is_float(stored) ? compute_type(stored) : DType::F32;
    Formula f{{}, t};
    int in = f.e.in(0, stored);
    Term x{compute_type(stored) == t ? in : f.e.cast(in, t)};
    Term below = f.op(ExprOp::Add, x, bias);
    Term above = f.op(ExprOp::Sub, x, bias);
    Term inner = f.select(f.op(ExprOp::Lt, f.constant(limit), x), above, f.constant(0));
    Term y = f.select(f.less(x, -limit), below, inner);
    if (!is_float(stored)) {
        f.e.cast(y.at, stored);
    }
    return {ops::map(c.g, std::move(f.e), stored, std::array{c.in(0)})};
}

Values gelu(NodeContext& c) {
    std::string how = c.s("approximate", "none");
    c.ensure(how == "none" || how == "tanh", "attribute 'approximate' is '", how,
             "', expected 'none' or 'tanh'");
    return {ops::gelu(c.g, c.in(0), how == "tanh")};
}

Values biased_gelu(NodeContext& c) {
    bool tanh = c.node.op_type == "FastGelu";
    Value x = c.has(1) ? ops::add(c.g, c.in(0), c.in(1)) : c.in(0);
    return {ops::gelu(c.g, x, tanh)};
}

// x + bias split into two halves: the first times gelu of the second.
Values bias_split_gelu(NodeContext& c) {
    Value x = ops::add(c.g, c.in(0), c.in(1));
    const Dim width = ops::dims(c.g, x).back();
    Dim half = floor_div(width, 2);
    Value left = ops::slice(c.g, x, -1, 0, half);
    Value right = ops::slice(c.g, x, -1, half, half);
    return {ops::mul(c.g, left, ops::gelu(c.g, right))};
}

const ImporterRow rows[] = {
    {"", "Relu", 6, relu, no_shapes},
    {"", "Sigmoid", 6, plain<ExprOp::Sigmoid>, no_shapes},
    {"", "Tanh", 6, plain<ExprOp::Tanh>, no_shapes},
    {"", "LeakyRelu", 6, leaky_relu, no_shapes},
    {"", "Elu", 6, elu, no_shapes},
    {"", "Selu", 6, selu, no_shapes},
    {"", "Celu", 12, celu, no_shapes},
    {"", "PRelu", 6, prelu6, no_shapes},
    {"", "PRelu", 7, prelu, no_shapes},
    {"", "ThresholdedRelu", 10, thresholded_relu, no_shapes},
    {"", "HardSigmoid", 6, hard_sigmoid, no_shapes},
    {"", "HardSwish", 14, hard_swish, no_shapes},
    {"", "Softplus", 1, softplus, no_shapes},
    {"", "Softsign", 1, softsign, no_shapes},
    {"", "Mish", 18, mish, no_shapes},
    {"", "Swish", 24, swish, no_shapes},
    {"", "SwiGLU", 28, swi_glu, no_shapes},
    {"", "Shrink", 9, shrink, no_shapes},
    {"", "Gelu", 20, gelu, no_shapes},
    {"com.microsoft", "Gelu", 1, gelu, no_shapes},
    {"com.microsoft", "FastGelu", 1, biased_gelu, no_shapes},
    {"com.microsoft", "BiasGelu", 1, biased_gelu, no_shapes},
    {"com.microsoft", "QuickGelu", 1, quick_gelu, no_shapes},
    {"com.microsoft", "BiasSplitGelu", 1, bias_split_gelu, no_shapes},
};

} // namespace

extern const ImporterTable activation_importers;
const ImporterTable activation_importers = rows;

} // namespace ingot::onnx
