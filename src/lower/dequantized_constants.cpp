// SPDX-License-Identifier: Apache-2.0
// dequantized_constants: for backends without integer products, dequantises narrow constant weights
// once, so that kernels can pack them.
#include "base/thread_pool.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"

namespace ingot::plan {

namespace {

/// In total; weights beyond it stay narrow in memory and are dequantised in each run.
constexpr int64_t most_bytes = int64_t{1} << 30;
constexpr int64_t grain = 1 << 16;

/// Maps an element to its parameter: one for all, one per position of an axis, or one per block
/// along it.
struct ParameterIndex {
    int64_t count = 1;
    int64_t inner = 1;
    int64_t size = 1;
    int64_t block = 0;

    int64_t operator()(int64_t element) const {
        if (count == 1) {
            return 0;
        }
        int64_t position = element / inner % size;
        if (block == 0) {
            return position;
        }
        int64_t blocks = (size + block - 1) / block;
        return (element / inner / size * blocks + position / block) * inner + element % inner;
    }
};

ParameterIndex index_of(const Tensor& q, const Tensor& parameter, const ops::Dequantize& a) {
    ParameterIndex out;
    out.count = parameter.count();
    if (out.count > 1) {
        auto axis = static_cast<size_t>(normalize_axis(a.axis, q.rank()));
        out.size = q.shape()[axis];
        out.block = a.block;
        for (size_t i = axis + 1; i < q.shape().size(); ++i) {
            out.inner *= q.shape()[i];
        }
    }
    return out;
}

bool is_narrow(DType t) {
    return bit_width(t) <= 8 && t != DType::Bool;
}

/// (q - zero) * scale, in f32.
Tensor dequantised(const Tensor& q, const Tensor& scale, const Tensor* zero,
                   const ops::Dequantize& a) {
    Tensor out = Tensor::empty(DType::F32, q.shape());
    std::span<float> to = out.as_mutable<float>();
    std::span<const float> scales = scale.as<float>();
    ParameterIndex of_scale = index_of(q, scale, a);
    ParameterIndex of_zero = zero == nullptr ? ParameterIndex{} : index_of(q, *zero, a);
    const auto* bytes = reinterpret_cast<const int8_t*>(q.bytes().data());
    bool plain = q.dtype() == DType::I8;
    ThreadPool::shared().parallel_for(q.count(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            auto x = plain ? static_cast<float>(bytes[i]) : static_cast<float>(q.get_f64(i));
            x -= zero == nullptr ? 0.0F : static_cast<float>(zero->get_f64(of_zero(i)));
            to[static_cast<size_t>(i)] = x * scales[static_cast<size_t>(of_scale(i))];
        }
    });
    return out;
}

Graph dequantised(const Graph& g) {
    int64_t bytes = 0;
    return dead_code(rewrite_all(g, [&](const Graph& part) {
        return rewrite(part, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
            const Graph& out = r.out();
            const Tensor* q = n.is(ops::dequantize_def) ? out.constant(in[0]) : nullptr;
            const Tensor* scale = q == nullptr ? nullptr : out.constant(in[1]);
            const Tensor* zero = in.size() == 3 ? out.constant(in[2]) : nullptr;
            bool fits = scale != nullptr && scale->dtype() == DType::F32 && is_narrow(q->dtype()) &&
                        n.as<ops::Dequantize>().dtype == DType::F32 &&
                        (in.size() < 3 || zero != nullptr) && bytes + q->count() * 4 <= most_bytes;
            if (!fits) {
                return std::optional<Values>();
            }
            bytes += q->count() * 4;
            Tensor wide = dequantised(*q, *scale, zero, n.as<ops::Dequantize>());
            return std::optional(Values{ops::constant(r.out(), std::move(wide))});
        });
    }));
}

} // namespace

Pass dequantized_constants(const KernelSet&) {
    return {
        .name = "dequantized_constants",
        .summary = "constants that are dequantised become floats, up to 1 GiB of them",
        .run = [](const Graph& g, const PassOptions&) { return dequantised(g); },
        .handles_bodies = true,
    };
}

} // namespace ingot::plan
