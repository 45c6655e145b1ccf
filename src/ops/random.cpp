// SPDX-License-Identifier: Apache-2.0
// random: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
// one block per element, so that every element can be computed alone. Counter: the element's index
// in words 0 and 1, then zeros. Key: the seed, low word first.
#include "base/interrupt.h"
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <cmath>

namespace ingot {

using eval_util::require_inputs;
using eval_util::write;

namespace {

std::vector<Type> infer_random(const Random& a, std::span<const Type> in) {
    require_inputs("random", in, 0);
    require(a.kind == "uniform" || a.kind == "normal", ErrorCode::InvalidModel, "random: kind is ",
            quote(a.kind), ", expected uniform or normal");
    require(is_float(a.dtype), ErrorCode::InvalidModel, "random: dtype is ", a.dtype,
            ", expected a float type");
    require(std::isfinite(a.a) && std::isfinite(a.b), ErrorCode::InvalidModel, "random: a is ", a.a,
            " and b is ", a.b, ", expected finite numbers");
    return {{a.dtype, a.dims}};
}

using Block = std::array<uint32_t, 4>;

Block philox(Block c, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        uint64_t p0 = uint64_t{0xD2511F53U} * c[0];
        uint64_t p1 = uint64_t{0xCD9E8D57U} * c[2];
        c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(p1),
             static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p0)};
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return c;
}

// In [0, 1): 53 bits for f64; for the others the leading 24 bits, which are exact in f32.
double unit(const Block& r, DType dtype) {
    if (dtype == DType::F64) {
        return static_cast<double>(((uint64_t{r[0]} << 32) | r[1]) >> 11) * 0x1p-53;
    }
    return static_cast<double>(r[0] >> 8) * 0x1p-24;
}

// Box-Muller, the cosine half; the logarithm's argument is in (0, 1].
double standard_normal(const Block& r) {
    double u = (static_cast<double>(r[0]) + 1) * 0x1p-32;
    double turn = static_cast<double>(r[1]) * 0x1p-32;
    return std::sqrt(-2 * std::log(u)) * std::cos(turn * 6.283185307179586);
}

// The largest value of a float type below `limit`: rounding must not reach the excluded bound.
double value_below(double limit, DType dtype) {
    Tensor t = Tensor::scalar(dtype, limit);
    double step = std::max(std::abs(t.get_f64(0)), 1e-30) * 0x1p-54;
    for (; t.get_f64(0) >= limit && std::isfinite(step); step *= 2) {
        t.set_f64(0, limit - step);
    }
    return t.get_f64(0);
}

void eval_random(const Random& a, EvalArgs& e) {
    Tensor& out = e.out[0];
    auto seed = static_cast<uint64_t>(a.seed);
    bool uniform = a.kind == "uniform";
    double top = a.a < a.b ? std::max(a.a, value_below(a.b, a.dtype)) : INFINITY;
    std::array<double, 1024> buffer;
    for (int64_t begin = 0; begin < out.count();) {
        check_interrupt();
        auto n = static_cast<size_t>(std::min<int64_t>(out.count() - begin, 1024));
        for (size_t i = 0; i < n; ++i) {
            auto index = static_cast<uint64_t>(begin) + i;
            Block r =
                philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                       static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
            buffer[i] = uniform ? std::min(a.a + unit(r, a.dtype) * (a.b - a.a), top)
                                : a.a + standard_normal(r) * a.b;
        }
        write(std::span<const double>(buffer.data(), n), begin, out);
        begin += static_cast<int64_t>(n);
    }
}

} // namespace

const OpDef random_def = primitive<Random>(
    "random", {Rounding::Matters, InHalf::Wide, like_result},
    [](const Random& a, std::span<const Type> in) { return infer_random(a, in); },
    [](const Random& a, EvalArgs& e) { eval_random(a, e); });

extern const OpTable random_ops;
static const OpDef* const list[] = {&random_def};
const OpTable random_ops = list;

} // namespace ingot
