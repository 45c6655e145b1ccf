// SPDX-License-Identifier: Apache-2.0
// Few results: one product of all taps with the input, so that no tile of the product stays empty,
// then sums of its shifted rows.
#include "backends/cpu/conv_transpose_phases.h"
#include "backends/cpu/conv_transpose_step.h"
#include "backends/cpu/padded_image.h"
#include "backends/cpu/simd/simd.h"
#include "base/integers.h"
#include "plan/program.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

namespace {

constexpr int64_t most_results = 12;
constexpr int64_t strip = 256; // results that one sum holds
constexpr int64_t grain_sums = 16 << 10;

int64_t count_of(const std::vector<SpatialAxis>& axes, int64_t SpatialAxis::*size) {
    int64_t n = 1;
    for (const SpatialAxis& a : axes) {
        n *= a.*size;
    }
    return n;
}

/// c[tap][result][element] of one image.
MatmulSpec columns_spec(const ConvProblem& p, int64_t elements) {
    const Shape& w = p.w.view.strides;
    const Shape& x = p.x.view.strides;
    Shape sizes(p.w.view.shape.begin() + 2, p.w.view.shape.end());
    Shape image(p.x.view.shape.begin() + 2, p.x.view.shape.end());
    MatmulSpec spec;
    spec.a.dtype = p.w.dtype;
    spec.a.batch = {0};
    spec.a.outer =
        sums(plan::offsets_of(sizes, Shape(w.begin() + 2, w.end())), multiples(p.results, w[1]));
    spec.a.depth = multiples(p.channels, w[0]);
    if (p.w_constant != nullptr) {
        spec.a.constant = p.w_constant + p.w.view.offset * bit_width(p.w.dtype) / 8;
        spec.a.key = str("conv transpose columns ", p.w.view.shape, w);
    }
    spec.b.dtype = p.x.dtype;
    spec.b.batch = {0};
    spec.b.outer = plan::offsets_of(image, Shape(x.begin() + 2, x.end()));
    spec.b.depth = multiples(p.channels, x[1]);
    spec.batch = {0};
    spec.rows = multiples(static_cast<int64_t>(spec.a.outer.size()), elements);
    spec.columns = multiples(elements, 1);
    return spec;
}

/// A tap that reaches a coordinate of the result, and the input's coordinate that it multiplies.
struct Reach {
    int64_t tap = 0;
    int64_t in = 0;
};

class ColumnsStep : public Step {
public:
    ColumnsStep(const ConvProblem& p, PackCache& packs)
        : problem_(p), elements_(count_of(p.axes, &SpatialAxis::in)),
          taps_(count_of(p.axes, &SpatialAxis::size)),
          out_elements_(count_of(p.axes, &SpatialAxis::out)),
          matmul_(make_matmul(columns_spec(p, elements_), packs)) {
        columns_bytes_ = round_up(taps_ * p.results * elements_ * 4, 64);
        const SpatialAxis& inner = p.axes.back();
        for (int64_t out = 0; out < std::min(inner.stride, inner.out); ++out) {
            phases_.push_back(phase_at(inner, out));
        }
        list_rows();
    }

    Status run(const RunContext& c) noexcept override {
        auto* columns = c.scratch<float>(scratch);
        auto rows = static_cast<int64_t>(rows_.size());
        int64_t work = problem_.axes.back().out * problem_.results * problem_.axes.back().size;
        int64_t grain = std::max<int64_t>(1, grain_sums / std::max<int64_t>(work, 1));
        for (int64_t n = 0; n < problem_.batch; ++n) {
            matmul_->run(c.bytes(problem_.w),
                         c.bytes(problem_.x) + n * problem_.x.view.strides[0] * 4,
                         reinterpret_cast<std::byte*>(columns),
                         c.scratch<std::byte>(scratch) + columns_bytes_, c.pool);
            float* out = c.at<float>(problem_.out) + n * out_elements_ * problem_.results;
            c.pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    sum_row(columns, rows_[static_cast<size_t>(row)],
                            out + row * problem_.axes.back().out);
                }
            });
        }
        return {};
    }

    int64_t scratch_bytes() const override { return columns_bytes_ + matmul_->scratch_bytes(); }

private:
    /// For each row of the result along its innermost axis, what the outer axes' taps reach.
    void list_rows() {
        rows_ = {{{0, 0}}};
        for (size_t i = 0; i + 1 < problem_.axes.size(); ++i) {
            const SpatialAxis& a = problem_.axes[i];
            std::vector<std::vector<Reach>> more;
            for (const std::vector<Reach>& so_far : rows_) {
                for (int64_t out = 0; out < a.out; ++out) {
                    more.push_back(extended(so_far, a, out));
                }
            }
            rows_ = std::move(more);
        }
    }

    static std::vector<Reach> extended(const std::vector<Reach>& so_far, const SpatialAxis& a,
                                       int64_t out) {
        std::vector<Reach> reaches;
        for (const Reach& r : so_far) {
            for (int64_t t = 0; t < a.size; ++t) {
                int64_t at = out + a.low - t * a.dilation;
                if (at >= 0 && at % a.stride == 0 && at / a.stride < a.in) {
                    reaches.push_back({r.tap * a.size + t, r.in * a.in + at / a.stride});
                }
            }
        }
        return reaches;
    }

    void sum_row(const float* columns, const std::vector<Reach>& reaches, float* out) const {
        for (const AxisPhase& phase : phases_) {
            for (int64_t first = 0; first < phase.count; first += strip) {
                for (int64_t result = 0; result < problem_.results; ++result) {
                    sum_strip(columns, reaches, phase, first, result, out);
                }
            }
        }
    }

    void sum_strip(const float* columns, const std::vector<Reach>& reaches, const AxisPhase& phase,
                   int64_t first, int64_t result, float* out) const {
        const SpatialAxis& inner = problem_.axes.back();
        int64_t count = std::min(strip, phase.count - first);
        alignas(64) float total[strip];
        std::memset(total, 0, static_cast<size_t>(count) * sizeof(float));
        for (const Reach& r : reaches) {
            for (int64_t j = 0; j < phase.taps; ++j) {
                int64_t tap = r.tap * inner.size + phase.first_tap[0] + j * phase.step;
                int64_t in = phase.first_in + first - j * phase.step_in; // of total[0]
                int64_t begin = std::clamp<int64_t>(-in, 0, count);
                int64_t end = std::clamp<int64_t>(inner.in - in, begin, count);
                if (begin == end) {
                    continue;
                }
                const float* from = columns + (tap * problem_.results + result) * elements_ +
                                    r.in * inner.in + in + begin;
                vector_loops().add_scaled(total + begin, from, 1.0f, end - begin);
            }
        }
        float* to = out + result * out_elements_ + phase.first_out[0] + first * inner.stride;
        for (int64_t q = 0; q < count; ++q) {
            to[q * inner.stride] = total[q];
        }
    }

    ConvProblem problem_;
    int64_t elements_;
    int64_t taps_;
    int64_t out_elements_;
    std::unique_ptr<Matmul> matmul_;
    int64_t columns_bytes_ = 0;
    std::vector<AxisPhase> phases_; // of the innermost axis
    std::vector<std::vector<Reach>> rows_;
};

} // namespace

bool conv_transpose_has_few_results(const Type& x, const Type& w, int64_t groups) {
    return groups == 1 && x.dtype == DType::F32 && w.dtype == DType::F32 && w.dims[1].is_const() &&
           w.dims[1].value() <= most_results;
}

std::unique_ptr<Step> make_conv_transpose_of_few(const ConvProblem& p, PackCache& packs) {
    return std::make_unique<ColumnsStep>(p, packs);
}

} // namespace ingot::cpu
