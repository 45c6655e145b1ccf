// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/post_ops.h"

#include "backends/cpu/epilogue.h"
#include "ops/primitives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

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

PostStep step(Function f, double alpha = 0, double beta = 0) {
    return {f, static_cast<float>(alpha), static_cast<float>(beta), -1};
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

std::optional<PostStep> recognise(const Sampled& f) {
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

/// Follows the expression from the main input to the result.
class Chain {
public:
    Chain(const Expr& e, int main) : e_(e), follows_(e.code.size(), 0) {
        for (size_t i = 0; i < e.code.size(); ++i) {
            const ExprInstr& x = e.code[i];
            if (x.op == ExprOp::In) {
                follows_[i] = x.args[0] == main ? 1 : 0;
                start_ = x.args[0] == main ? static_cast<int>(i) : start_;
                continue;
            }
            for (int a = 0; a < arity(x.op); ++a) {
                follows_[i] |= follows_[at(x.args[static_cast<size_t>(a)])];
            }
        }
    }

    std::optional<std::vector<PostStep>> steps() const {
        std::vector<PostStep> out;
        int current = start_;
        auto last = static_cast<int>(e_.code.size()) - 1;
        while (current >= 0 && current != last) {
            int next = -1;
            std::optional<PostStep> s = longest_function(current, next);
            if (!s) {
                s = binary(current, next);
            }
            if (!s || out.size() == static_cast<size_t>(onednn::most_posts)) {
                return std::nullopt;
            }
            out.push_back(*s);
            current = next;
        }
        return current < 0 ? std::nullopt : std::optional(out);
    }

private:
    static size_t at(int i) { return static_cast<size_t>(i); }

    /// Whether all dependents of `from` reach later instructions only through `to`.
    bool separates(int from, int to, const std::map<int, int>& inside) const {
        for (size_t i = at(from) + 1; i < e_.code.size(); ++i) {
            if (inside.count(static_cast<int>(i)) != 0 || follows_[i] == 0) {
                continue;
            }
            const ExprInstr& x = e_.code[i];
            for (int a = 0; a < arity(x.op); ++a) {
                int arg = x.args[at(a)];
                if (arg != to && (arg == from || (arg > from && inside.count(arg) != 0 &&
                                                  follows_[at(arg)] != 0))) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Copies instruction i and its operands, with `from` as the only input. False when it needs
    /// another input.
    bool copy(int i, int from, Expr& out, std::map<int, int>& done) const {
        if (i == from || done.count(i) != 0) {
            return true;
        }
        ExprInstr x = e_.code[at(i)];
        if (x.op == ExprOp::In || (follows_[at(i)] != 0 && i < from) || x.type == DType::F64) {
            return false;
        }
        for (int a = 0; a < (x.op == ExprOp::Const ? 0 : arity(x.op)); ++a) {
            if (!copy(x.args[at(a)], from, out, done)) {
                return false;
            }
        }
        for (int a = 0; a < (x.op == ExprOp::Const ? 0 : arity(x.op)); ++a) {
            int arg = x.args[at(a)];
            x.args[at(a)] = arg == from ? 0 : done.at(arg);
        }
        out.code.push_back(x);
        done[i] = static_cast<int>(out.code.size()) - 1;
        return true;
    }

    std::optional<PostStep> longest_function(int from, int& to) const {
        for (to = static_cast<int>(e_.code.size()) - 1; to > from; --to) {
            if (follows_[at(to)] == 0 || e_.code[at(to)].type != DType::F32) {
                continue;
            }
            Expr function;
            function.in(0, DType::F32);
            std::map<int, int> inside;
            if (!copy(to, from, function, inside) || !separates(from, to, inside)) {
                continue;
            }
            if (std::optional<PostStep> s = recognise(Sampled(std::move(function)))) {
                return s;
            }
        }
        return std::nullopt;
    }

    /// The only instruction that reads `from`, when its other operand is an input of the map.
    std::optional<PostStep> binary(int from, int& to) const {
        to = -1;
        for (size_t i = at(from) + 1; i < e_.code.size(); ++i) {
            const ExprInstr& x = e_.code[i];
            for (int a = 0; a < (x.op == ExprOp::In ? 0 : arity(x.op)); ++a) {
                if (x.args[at(a)] == from) {
                    if (to >= 0) {
                        return std::nullopt;
                    }
                    to = static_cast<int>(i);
                }
            }
        }
        if (to < 0 || arity(e_.code[at(to)].op) != 2) {
            return std::nullopt;
        }
        const ExprInstr& x = e_.code[at(to)];
        bool first = x.args[0] == from;
        const ExprInstr& other = e_.code[at(first ? x.args[1] : x.args[0])];
        std::optional<Function> f = function_of(x.op, first);
        if (!f || other.op != ExprOp::In || other.type != DType::F32) {
            return std::nullopt;
        }
        PostStep s = step(*f);
        s.input = other.args[0];
        return s;
    }

    static std::optional<Function> function_of(ExprOp op, bool first) {
        switch (op) {
        case ExprOp::Add:
            return Function::Add;
        case ExprOp::Mul:
            return Function::Mul;
        case ExprOp::Min:
            return Function::Min;
        case ExprOp::Max:
            return Function::Max;
        case ExprOp::Sub:
            return first ? std::optional(Function::Sub) : std::nullopt;
        case ExprOp::Div:
            return first ? std::optional(Function::Div) : std::nullopt;
        default:
            return std::nullopt;
        }
    }

    const Expr& e_;
    std::vector<char> follows_; // depends on the main input
    int start_ = -1;
};

} // namespace

std::optional<std::vector<PostStep>> post_steps(const Expr& e, int main) {
    return Chain(e, main).steps();
}

std::optional<Posts> posts_of(const StepArgs& args) {
    Posts posts;
    const Node* map = epilogue_of(args.group);
    if (map == nullptr) {
        return posts;
    }
    Value main = args.group.first().outputs[0];
    int index = -1;
    for (size_t i = 0; i < map->inputs.size(); ++i) {
        if (args.group.graph.type(map->inputs[i]).dtype != DType::F32) {
            return std::nullopt;
        }
        if (map->inputs[i] == main) {
            if (index >= 0) {
                return std::nullopt;
            }
            index = static_cast<int>(i);
        }
    }
    std::optional<std::vector<PostStep>> steps = post_steps(map->as<Map>().body, index);
    if (!steps) {
        return std::nullopt;
    }
    posts.steps = std::move(*steps);
    for (const PostStep& s : posts.steps) {
        Operand o;
        if (s.input >= 0) {
            int input = args.group.input_index(map->inputs[static_cast<size_t>(s.input)]);
            if (input < 0) {
                return std::nullopt;
            }
            o = args.in[static_cast<size_t>(input)];
            o.view = plan::broadcasted(o.view, args.out[0].view.shape);
        }
        posts.operands.push_back(std::move(o));
    }
    return posts;
}

} // namespace ingot::cpu
