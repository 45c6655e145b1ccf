// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/conv_step.h"

#include "backends/cpu/expr_program.h"
#include "backends/cpu/padded_image.h"
#include "base/integers.h"
#include "plan/program.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

constexpr int64_t grain_elements = 16 << 10;

Shape out_sizes(const ConvProblem& p) {
    Shape s;
    for (const SpatialAxis& a : p.axes) {
        s.push_back(a.out);
    }
    return s;
}

/// Offset in the padded image of the first element under each output position.
std::vector<int64_t> position_offsets(const ConvProblem& p, const PaddedImage& image) {
    Shape strides = image.strides;
    for (size_t i = 0; i < strides.size(); ++i) {
        strides[i] *= p.axes[i].stride;
    }
    return plan::offsets_of(out_sizes(p), strides);
}

/// Offset of each tap of one window.
std::vector<int64_t> tap_offsets(const ConvProblem& p, const PaddedImage& image) {
    Shape sizes;
    Shape strides = image.strides;
    for (size_t i = 0; i < strides.size(); ++i) {
        sizes.push_back(p.axes[i].size);
        strides[i] *= p.axes[i].dilation;
    }
    return plan::offsets_of(sizes, strides);
}

std::vector<int64_t> weight_tap_offsets(const ConvProblem& p) {
    Shape sizes(p.w.view.shape.begin() + 2, p.w.view.shape.end());
    Shape strides(p.w.view.strides.begin() + 2, p.w.view.strides.end());
    return plan::offsets_of(sizes, strides);
}

MatmulSpec matmul_spec(const ConvProblem& p, const PaddedImage& image) {
    int64_t inner = p.channels / p.groups;
    int64_t outer = p.results / p.groups;
    const Shape& w = p.w.view.strides;
    MatmulSpec spec;
    spec.a.dtype = p.x.dtype;
    spec.a.batch = multiples(p.groups, inner);
    spec.a.outer = position_offsets(p, image);
    spec.a.depth = sums(tap_offsets(p, image), multiples(inner, 1));
    spec.b.dtype = p.w.dtype;
    spec.b.batch = multiples(p.groups, outer * w[0]);
    spec.b.outer = multiples(outer, w[0]);
    spec.b.depth = sums(weight_tap_offsets(p), multiples(inner, w[1]));
    if (p.w_constant != nullptr) {
        spec.b.constant = p.w_constant + p.w.view.offset * bit_width(p.w.dtype) / 8;
        spec.b.key = str("conv ", p.w.view.shape, w, p.groups);
    }
    spec.dtype = p.out.dtype;
    spec.batch = multiples(p.groups, outer);
    spec.rows = multiples(product(out_sizes(p)), p.results);
    spec.columns = multiples(outer, 1);
    return spec;
}

class MatmulConvStep : public Step {
public:
    MatmulConvStep(const ConvProblem& p, PackCache& packs)
        : problem_(p), image_(p.axes, p.channels),
          matmul_(make_matmul(matmul_spec(p, image_), packs)) {
        width_ = bit_width(p.x.dtype) / 8;
        padded_bytes_ = image_.pads ? (image_.elements() * width_ + 63) / 64 * 64 : 0;
        out_bytes_ = product(out_sizes(p)) * p.results * bit_width(p.out.dtype) / 8;
        in_bytes_ = p.channels * width_;
        for (const SpatialAxis& a : p.axes) {
            in_bytes_ *= a.in;
        }
    }

    Status run(const RunContext& c) noexcept override {
        auto* memory = c.scratch<std::byte>(scratch);
        for (int64_t n = 0; n < problem_.batch; ++n) {
            const std::byte* x = c.bytes(problem_.x) + n * in_bytes_;
            if (image_.pads) {
                pad_image(problem_.axes, image_, x, memory, width_, c.pool);
                x = memory;
            }
            matmul_->run(x, c.bytes(problem_.w), c.bytes(problem_.out) + n * out_bytes_,
                         memory + padded_bytes_, c.pool);
        }
        return {};
    }

    int64_t scratch_bytes() const override { return padded_bytes_ + matmul_->scratch_bytes(); }

private:
    ConvProblem problem_;
    PaddedImage image_;
    std::unique_ptr<Matmul> matmul_;
    int64_t width_ = 4;
    int64_t padded_bytes_ = 0;
    int64_t in_bytes_ = 0;
    int64_t out_bytes_ = 0;
};

/// One kernel per channel, f32: rows of channels times rows of weights.
class DepthwiseStep : public Step {
public:
    explicit DepthwiseStep(const ConvProblem& p)
        : problem_(p), image_(p.axes, p.channels), positions_(position_offsets(p, image_)),
          taps_(tap_offsets(p, image_)), weights_(weight_tap_offsets(p)) {
        mul_ = map_loop(ExprOp::Mul, DType::F32);
        padded_ = image_.pads ? image_.elements() : 0;
    }

    Status run(const RunContext& c) noexcept override {
        auto* memory = c.scratch<float>(scratch);
        int64_t channels = problem_.channels;
        float* packed = memory + padded_;
        const auto* w = c.at<const float>(problem_.w);
        for (size_t t = 0; t < weights_.size(); ++t) {
            for (int64_t i = 0; i < channels; ++i) {
                packed[static_cast<int64_t>(t) * channels + i] =
                    w[weights_[t] + i * problem_.w.view.strides[0]];
            }
        }
        int64_t in = channels;
        for (const SpatialAxis& a : problem_.axes) {
            in *= a.in;
        }
        auto count = static_cast<int64_t>(positions_.size());
        for (int64_t n = 0; n < problem_.batch; ++n) {
            const float* x = c.at<const float>(problem_.x) + n * in;
            if (image_.pads) {
                pad_image(problem_.axes, image_, reinterpret_cast<const std::byte*>(x),
                          reinterpret_cast<std::byte*>(memory), 4, c.pool);
                x = memory;
            }
            float* y = c.at<float>(problem_.out) + n * count * channels;
            convolve(c, x, packed, y);
        }
        return {};
    }

    int64_t scratch_bytes() const override {
        return (padded_ + static_cast<int64_t>(taps_.size()) * problem_.channels) * 4;
    }

private:
    void convolve(const RunContext& c, const float* x, const float* packed, float* y) const {
        const VectorLoops& loops = vector_loops();
        int64_t channels = problem_.channels;
        auto taps = static_cast<int64_t>(taps_.size());
        int64_t grain = std::max<int64_t>(1, grain_elements / (channels * taps));
        c.pool.parallel_for(static_cast<int64_t>(positions_.size()), grain,
                            [&](int64_t begin, int64_t end) {
                                for (int64_t i = begin; i < end; ++i) {
                                    const float* from = x + positions_[static_cast<size_t>(i)];
                                    float* to = y + i * channels;
                                    mul_(to, from + taps_[0], packed, nullptr, channels);
                                    for (int64_t t = 1; t < taps; ++t) {
                                        loops.multiply_add(to, from + taps_[static_cast<size_t>(t)],
                                                           packed + t * channels, channels);
                                    }
                                }
                            });
    }

    ConvProblem problem_;
    PaddedImage image_;
    std::vector<int64_t> positions_;
    std::vector<int64_t> taps_;
    std::vector<int64_t> weights_;
    MapLoop mul_ = nullptr;
    int64_t padded_ = 0;
};

/// One kernel per channel over bytes, into i32.
class ByteDepthwiseStep : public Step {
public:
    explicit ByteDepthwiseStep(const ConvProblem& p)
        : problem_(p), image_(p.axes, p.channels), positions_(position_offsets(p, image_)),
          taps_(tap_offsets(p, image_)), weights_(weight_tap_offsets(p)) {
        padded_bytes_ = image_.pads ? round_up(image_.elements(), 64) : 0;
    }

    Status run(const RunContext& c) noexcept override {
        auto* memory = c.scratch<std::byte>(scratch);
        int64_t channels = problem_.channels;
        auto* packed = reinterpret_cast<int16_t*>(memory + padded_bytes_);
        pack(c.bytes(problem_.w), packed);
        int64_t in = channels;
        for (const SpatialAxis& a : problem_.axes) {
            in *= a.in;
        }
        auto count = static_cast<int64_t>(positions_.size());
        auto taps = static_cast<int64_t>(taps_.size());
        int64_t grain =
            std::max<int64_t>(1, grain_elements / std::max<int64_t>(channels * taps, 1));
        for (int64_t n = 0; n < problem_.batch; ++n) {
            const std::byte* x = c.bytes(problem_.x) + n * in;
            if (image_.pads) {
                pad_image(problem_.axes, image_, x, memory, 1, c.pool);
                x = memory;
            }
            auto* y = c.at<int32_t>(problem_.out) + n * count * channels;
            c.pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    vector_loops().byte_taps(
                        y + i * channels, x + positions_[static_cast<size_t>(i)],
                        problem_.x.dtype == DType::I8, taps_.data(), taps, packed, channels);
                }
            });
        }
        return {};
    }

    int64_t scratch_bytes() const override {
        return padded_bytes_ + static_cast<int64_t>(taps_.size()) * problem_.channels * 2;
    }

private:
    void pack(const std::byte* w, int16_t* packed) const {
        for (size_t t = 0; t < weights_.size(); ++t) {
            for (int64_t i = 0; i < problem_.channels; ++i) {
                std::byte b = w[weights_[t] + i * problem_.w.view.strides[0]];
                *packed++ = problem_.w.dtype == DType::I8 ? static_cast<int8_t>(b)
                                                          : static_cast<uint8_t>(b);
            }
        }
    }

    ConvProblem problem_;
    PaddedImage image_;
    std::vector<int64_t> positions_;
    std::vector<int64_t> taps_;
    std::vector<int64_t> weights_;
    int64_t padded_bytes_ = 0;
};

} // namespace

std::unique_ptr<Step> make_conv(const ConvProblem& problem, PackCache& packs) {
    bool depthwise = problem.groups == problem.channels && problem.groups == problem.results &&
                     problem.groups > 1;
    if (depthwise && problem.x.dtype == DType::F32 && problem.out.dtype == DType::F32) {
        return std::make_unique<DepthwiseStep>(problem);
    }
    if (depthwise && is_byte(problem.x.dtype) && is_byte(problem.w.dtype) &&
        problem.out.dtype == DType::I32) {
        return std::make_unique<ByteDepthwiseStep>(problem);
    }
    return std::make_unique<MatmulConvStep>(problem, packs);
}

} // namespace ingot::cpu
