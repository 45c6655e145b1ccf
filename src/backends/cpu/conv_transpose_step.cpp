// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/conv_transpose_step.h"

#include "backends/cpu/conv_transpose_phases.h"
#include "backends/cpu/padded_image.h"
#include "base/integers.h"
#include "plan/program.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

/// The input with the zeros that taps of any phase read beside it.
SpatialAxis padded_axis(const SpatialAxis& a, const std::vector<AxisPhase>& phases) {
    SpatialAxis padded;
    padded.in = a.in;
    for (const AxisPhase& p : phases) {
        if (p.taps > 0) {
            padded.low = std::max(padded.low, (p.taps - 1) * p.step_in - p.first_in);
            padded.high = std::max(padded.high, p.first_in + p.count - a.in);
        }
    }
    return padded;
}

std::vector<int64_t> scaled(std::vector<int64_t> v, int64_t factor) {
    for (int64_t& x : v) {
        x *= factor;
    }
    return v;
}

/// One phase of every axis: offsets of its results, its elements and its taps.
struct Phase {
    std::vector<int64_t> rows = {0};    // in the result, by position
    std::vector<int64_t> columns = {0}; // in the result, by phase
    std::vector<int64_t> positions = {0};
    std::vector<int64_t> taps = {0};
    std::vector<int64_t> kernel_columns = {0};
    std::vector<int64_t> kernel_taps = {0};
    std::string key;

    void add(const AxisPhase& p, int64_t stride, int64_t low, int64_t out_stride,
             int64_t image_stride, int64_t kernel_stride) {
        rows = sums(rows, multiples(p.count, stride * out_stride));
        columns = sums(columns, scaled(p.first_out, out_stride));
        int64_t first = (p.first_in + low) * image_stride;
        positions = sums(positions, sums({first}, multiples(p.count, image_stride)));
        taps = sums(taps, multiples(p.taps, -p.step_in * image_stride));
        kernel_columns = sums(kernel_columns, scaled(p.first_tap, kernel_stride));
        kernel_taps = sums(kernel_taps, multiples(p.taps, p.step * kernel_stride));
        key += str(' ', p.first_tap, p.taps, '/', p.step);
    }
};

class ConvTransposeStep : public Step {
public:
    ConvTransposeStep(const ConvProblem& p, PackCache& packs) : problem_(p) {
        std::vector<std::vector<AxisPhase>> phases;
        for (const SpatialAxis& a : p.axes) {
            phases.push_back(phases_of(a));
            image_axes_.push_back(padded_axis(a, phases.back()));
            in_elements_ *= a.in;
            out_elements_ *= a.out;
        }
        image_ = PaddedImage(image_axes_, p.channels);
        width_ = bit_width(p.x.dtype) / 8;
        out_width_ = bit_width(p.out.dtype) / 8;
        padded_bytes_ = image_.pads ? round_up(image_.elements() * width_, 64) : 0;
        for (const Phase& phase : combined(phases)) {
            products_.push_back(make_matmul(spec_of(phase), packs));
            scratch_bytes_ = std::max(scratch_bytes_, products_.back()->scratch_bytes());
        }
    }

    Status run(const RunContext& c) noexcept override {
        auto* memory = c.scratch<std::byte>(scratch);
        for (int64_t n = 0; n < problem_.batch; ++n) {
            const std::byte* x =
                c.bytes(problem_.x) + n * in_elements_ * problem_.channels * width_;
            if (image_.pads) {
                pad_image(image_axes_, image_, x, memory, width_, c.pool);
                x = memory;
            }
            std::byte* out =
                c.bytes(problem_.out) + n * out_elements_ * problem_.results * out_width_;
            for (const std::unique_ptr<Matmul>& product : products_) {
                product->run(x, c.bytes(problem_.w), out, memory + padded_bytes_, c.pool);
            }
        }
        return {};
    }

    int64_t scratch_bytes() const override { return padded_bytes_ + scratch_bytes_; }

private:
    /// Every choice of a phase for each axis.
    std::vector<Phase> combined(const std::vector<std::vector<AxisPhase>>& axes) const {
        std::vector<Phase> all(1);
        int64_t out_stride = problem_.results * out_elements_;
        for (size_t i = 0; i < axes.size(); ++i) {
            const SpatialAxis& a = problem_.axes[i];
            out_stride /= std::max<int64_t>(a.out, 1);
            std::vector<Phase> more;
            for (const Phase& so_far : all) {
                for (const AxisPhase& p : axes[i]) {
                    more.push_back(so_far);
                    more.back().add(p, a.stride, image_axes_[i].low, out_stride, image_.strides[i],
                                    problem_.w.view.strides[i + 2]);
                }
            }
            all = std::move(more);
        }
        return all;
    }

    MatmulSpec spec_of(const Phase& phase) const {
        const ConvProblem& p = problem_;
        int64_t inner = p.channels / p.groups;
        int64_t outer = p.results / p.groups;
        const Shape& w = p.w.view.strides;
        MatmulSpec spec;
        spec.a.dtype = p.x.dtype;
        spec.a.batch = multiples(p.groups, inner);
        spec.a.outer = phase.positions;
        spec.a.depth = sums(phase.taps, multiples(inner, 1));
        spec.b.dtype = p.w.dtype;
        spec.b.batch = multiples(p.groups, inner * w[0]);
        spec.b.outer = sums(phase.kernel_columns, multiples(outer, w[1]));
        spec.b.depth = sums(phase.kernel_taps, multiples(inner, w[0]));
        if (p.w_constant != nullptr) {
            spec.b.constant = p.w_constant + p.w.view.offset * bit_width(p.w.dtype) / 8;
            spec.b.key = str("conv transpose ", p.w.view.shape, w, p.groups, phase.key);
        }
        spec.dtype = p.out.dtype;
        spec.batch = multiples(p.groups, outer);
        spec.rows = phase.rows;
        spec.columns = sums(phase.columns, multiples(outer, 1));
        return spec;
    }

    ConvProblem problem_;
    std::vector<SpatialAxis> image_axes_;
    PaddedImage image_{{}, 0};
    std::vector<std::unique_ptr<Matmul>> products_;
    int64_t in_elements_ = 1; // of a channel
    int64_t out_elements_ = 1;
    int64_t width_ = 4;
    int64_t out_width_ = 4;
    int64_t padded_bytes_ = 0;
    int64_t scratch_bytes_ = 0;
};

} // namespace

std::unique_ptr<Step> make_conv_transpose(const ConvProblem& problem, PackCache& packs) {
    return std::make_unique<ConvTransposeStep>(problem, packs);
}

} // namespace ingot::cpu
