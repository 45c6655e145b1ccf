// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/post_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::cpu {

using onednn::Function;

namespace {

constexpr double far_away = 1e6;

/// A function of one number, given by scalar code.
class Sampled {
public:
    explicit Sampled(Expr e) : e_(std::move(e)), work_(e_.code.size()) {}
    double operator()(double x) const {
        Scalar in;
        in.f = x;
        return eval(e_, std::span(&in, 1), work_).f;
    }

private:
    Expr e_;
    mutable std::vector<Scalar> work_;
};

std::vector<double> sample_points() {
    std::vector<double> points = {0, far_away, -far_away, 1e3, -1e3, 1e-5, -1e-5};
    for (int i = -80; i <= 80; ++i) {
        points.push_back(i * 0.2495);
    }
    return points;
}

template <class F>
bool same(const Sampled& f, const F& candidate) {
    static const std::vector<double> points = sample_points();
    constexpr double tolerance = 3e-6;
    return std::all_of(points.begin(), points.end(), [&](double x) {
        double a = f(x);
        double b = candidate(x);
        if (std::isnan(a) || std::isnan(b)) {
            return std::isnan(a) && std::isnan(b);
        }
        double limit = tolerance * std::max({1.0, std::abs(b), std::min(std::abs(x), 1e3) * 1e-3});
        return a == b || std::abs(a - b) <= limit;
    });
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

double clip(double x, double low, double high) {
    return std::min(std::max(x, low), high);
}

/// Recognises functions whose parameters follow from a few values.
std::optional<PostStep> with_parameters(const Sampled& f) {
    double zero = f(0);
    double slope = f(1) - zero;
    if (same(f, [&](double x) { return slope * x + zero; })) {
        return step(Function::Linear, slope, zero);
    }
    double leak = -f(-1);
    if (same(f, [&](double x) { return x > 0 ? x : leak * x; })) {
        return step(Function::Relu, leak);
    }
    double low = f(-far_away);
    double high = f(far_away);
    if (low <= high && same(f, [&](double x) { return clip(x, low, high); })) {
        constexpr double most = std::numeric_limits<float>::max();
        return step(Function::Clip, low == -far_away ? -most : low, high == far_away ? most : high);
    }
    double inner = (f(0.25) - f(-0.25)) * 2;
    if (same(f, [&](double x) { return clip(inner * x + zero, 0, 1); })) {
        return step(Function::HardSigmoid, inner, zero);
    }
    double a = (f(1) + f(-1)) / 2;
    double b = (f(1) - f(-1)) / 2;
    if (same(f, [&](double x) { return x * clip(a * x + b, 0, 1); })) {
        return step(Function::HardSwish, a, b);
    }
    double elu = f(-1) / std::expm1(-1.0);
    if (same(f, [&](double x) { return x > 0 ? x : elu * std::expm1(x); })) {
        return step(Function::Elu, elu);
    }
    double gate = f(1);
    if (gate > 0 && gate < 1) {
        double scale = std::log(gate / (1 - gate));
        if (same(f, [&](double x) { return x * sigmoid(scale * x); })) {
            return step(Function::Swish, scale);
        }
    }
    return std::nullopt;
}

/// The byte that a store makes of x: rounded to the nearest, ties to even, within limits.
int64_t stored(double x, DType t) {
    int64_t low = t == DType::I8 ? -128 : 0;
    return std::clamp(static_cast<int64_t>(std::nearbyint(x)), low, low + 255);
}

} // namespace

PostStep step(Function f, double alpha, double beta) {
    return {f, static_cast<float>(alpha), static_cast<float>(beta), -1};
}

std::optional<PostStep> recognise(const Expr& e) {
    const Sampled f(e);
    if (std::optional<PostStep> s = with_parameters(f)) {
        return s;
    }
    constexpr double root_half = 0.70710678118654752;
    constexpr double root_two_over_pi = 0.79788456080286536;
    if (same(f, sigmoid)) {
        return step(Function::Sigmoid);
    }
    if (same(f, [](double x) { return std::tanh(x); })) {
        return step(Function::Tanh);
    }
    if (same(f, [](double x) { return 0.5 * x * (1 + std::erf(x * root_half)); })) {
        return step(Function::GeluErf);
    }
    if (same(f, [](double x) {
            return 0.5 * x * (1 + std::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
        })) {
        return step(Function::GeluTanh);
    }
    auto softplus = [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); };
    if (same(f, [&](double x) { return x * std::tanh(softplus(x)); })) {
        return step(Function::Mish);
    }
    return std::nullopt;
}

std::optional<std::vector<PostStep>> steps_before_store(const Expr& e) {
    std::vector<Scalar> work(e.code.size());
    auto f = [&](double x) {
        Scalar in;
        in.f = x;
        return eval(e, std::span(&in, 1), work).i;
    };
    auto z = static_cast<double>(f(0));
    bool rounds = std::fmod(z, 2) != 0;
    auto expected = [&](double x) {
        return stored((rounds ? std::nearbyint(x) : x) + z, e.type());
    };
    // Every quarter between values, so every half too.
    for (double x = -400; x <= 400; x += 0.25) {
        if (f(x) != expected(x)) {
            return std::nullopt;
        }
    }
    if (f(far_away) != expected(far_away) || f(-far_away) != expected(-far_away)) {
        return std::nullopt;
    }
    std::vector<PostStep> out;
    if (rounds) {
        out.push_back(step(Function::Round));
    }
    if (z != 0) {
        out.push_back(step(Function::Linear, 1, z));
    }
    return out;
}

std::optional<double> zero_point(const Expr& e, DType byte) {
    std::vector<Scalar> work(e.code.size());
    auto f = [&](int64_t q) {
        Scalar in;
        in.i = q;
        return eval(e, std::span(&in, 1), work).f;
    };
    double z = -f(0);
    int64_t low = byte == DType::I8 ? -128 : 0;
    for (int64_t q = low; q < low + 256; ++q) {
        if (f(q) != static_cast<double>(q) - z) {
            return std::nullopt;
        }
    }
    return z;
}

} // namespace ingot::cpu
