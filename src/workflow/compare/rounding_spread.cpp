// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/rounding_spread.h"

#include "ops/evaluator.h"
#include "ops/primitives.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace ingot {

namespace {

constexpr uint64_t samples = 4;
// Sums have errors of several last bits, and more values tip over in a sample than in a run.
constexpr int bits_less = 3;
constexpr double largest_share = 0.05; // of the range

int significant_bits(DType compute) {
    int bits = compute == DType::F16 ? 11 : compute == DType::BF16 ? 8 : 24;
    return bits - bits_less;
}

/// Rounds to that many significant bits; a value between two of them becomes the nearer one more
/// often.
class RandomRounding {
public:
    RandomRounding(uint64_t seed, int bits) : random_(seed), bits_(bits) {}

    Tensor operator()(const Tensor& t) {
        Tensor out = Tensor::empty(t.dtype(), t.shape());
        for (int64_t i = 0; i < t.count(); ++i) {
            out.set_f64(i, rounded(t.get_f64(i)));
        }
        return out;
    }

private:
    double rounded(double x) {
        if (!std::isfinite(x) || x == 0) {
            return x;
        }
        int exponent = 0;
        double scaled = std::ldexp(std::frexp(x, &exponent), bits_);
        double below = std::floor(scaled);
        double chosen = uniform_(random_) < scaled - below ? below + 1 : below;
        return std::ldexp(chosen, exponent - bits_);
    }

    std::mt19937_64 random_;
    std::uniform_real_distribution<double> uniform_{0, 1};
    int bits_;
};

bool has_spread(DType t) {
    return is_float(t) || (t != DType::Bool && bit_width(t) <= 8);
}

} // namespace

Spreads rounding_spreads(const Graph& g, std::span<const Tensor> inputs,
                         const std::map<std::string, Tensor>& exact, DType compute) {
    Spreads spreads;
    auto look = [&](const std::string& name, const Tensor& t) {
        auto best = exact.find(name);
        if (best != exact.end() && has_spread(t.dtype()) && t.shape() == best->second.shape()) {
            double& spread = spreads[name];
            spread = std::max(spread, difference(name, t, best->second, 0, 0).max_absolute);
        }
    };
    auto sample = [&](const Graph& observed, EvalOptions eval) {
        eval.observe = [&](Value v, const Tensor& t) {
            if (!observed.value_name(v).empty()) {
                look(observed.value_name(v), t);
            }
        };
        std::vector<Tensor> results = evaluate(g, inputs, eval);
        for (size_t i = 0; i < results.size(); ++i) {
            look(g.output_names()[i], results[i]);
        }
    };
    sample(g, {}); // rounds inside of maps too
    Graph wide = promoted_to_f64(g);
    for (uint64_t seed = 0; seed < samples; ++seed) {
        RandomRounding rounding(seed, significant_bits(compute));
        EvalOptions eval;
        eval.f64 = true;
        eval.replace = [&](const Node& n, Tensor t) {
            return t.dtype() != DType::F64 || n.is(constant_def) ? std::move(t) : rounding(t);
        };
        sample(wide, eval);
    }
    return spreads;
}

void accept_rounding(TensorDifference& d, const Spreads& spreads, double atol, double rtol) {
    auto spread = spreads.find(d.name);
    if (d.within || !d.problem.empty() || d.mismatched.count > 0 || spread == spreads.end() ||
        spread->second > largest_share * d.range) {
        return;
    }
    if (d.max_absolute <= atol + rtol * d.range + 2 * spread->second) {
        d.spread = spread->second;
        d.within = true;
    }
}

} // namespace ingot
