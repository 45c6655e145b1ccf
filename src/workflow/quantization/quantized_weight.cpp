// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/quantized_weight.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot {

namespace {

/// The scale that represents a range.
float scale_for(DType type, double low, double high) {
    double most = std::max(high, -low);
    double scale = type == DType::I8       ? most / 127
                   : type == DType::F8E4M3 ? most / 448
                                           : std::max(high / 7, -low / 8);
    auto rounded = static_cast<float>(scale);
    return rounded > 0 ? rounded : 1.0F;
}

double quantised(DType type, float x, float scale) {
    double steps = static_cast<double>(x / scale);
    if (type == DType::F8E4M3) {
        return std::clamp(steps, -448.0, 448.0);
    }
    double high = type == DType::I8 ? 127 : 7;
    double low = type == DType::I8 ? -127 : -8;
    return std::clamp(std::nearbyint(steps), low, high);
}

/// The index of an element's scale.
class ScaleIndex {
public:
    ScaleIndex(const Shape& shape, int64_t axis, int64_t block) : block_(block) {
        size_ = shape[static_cast<size_t>(axis)];
        for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) {
            inner_ *= shape[i];
        }
    }
    int64_t at(int64_t element) const {
        int64_t position = element / inner_ % size_;
        if (block_ == 0) {
            return position;
        }
        int64_t outer = element / inner_ / size_;
        return (outer * (size_ / block_) + position / block_) * inner_ + element % inner_;
    }

private:
    int64_t block_;
    int64_t size_ = 1;
    int64_t inner_ = 1;
};

} // namespace

QuantizedWeight quantized_weight(const Tensor& weight, DType type, int64_t axis, int64_t block) {
    auto a = static_cast<size_t>(axis);
    CHECK(axis >= 0 && a < weight.shape().size(), "axis ", axis, " of a weight ", weight.shape());
    CHECK(block == 0 || weight.shape()[a] % block == 0, "blocks of ", block, " of a weight ",
          weight.shape());
    Shape scales = block == 0 ? Shape{weight.shape()[a]} : weight.shape();
    if (block > 0) {
        scales[a] /= block;
    }
    QuantizedWeight out{Tensor::zeros(type, weight.shape()), Tensor::zeros(DType::F32, scales),
                        axis, block, 0};
    ScaleIndex index(weight.shape(), axis, block);
    auto count = static_cast<size_t>(out.scale.count());
    std::vector<double> low(count, 0);
    std::vector<double> high(count, 0);
    bool finite = true;
    for (int64_t i = 0; i < weight.count(); ++i) {
        double x = weight.get_f64(i);
        auto s = static_cast<size_t>(index.at(i));
        finite = finite && std::isfinite(x);
        low[s] = std::min(low[s], x);
        high[s] = std::max(high[s], x);
    }
    if (!finite) {
        out.error = std::numeric_limits<double>::infinity();
        return out;
    }
    std::span<float> scale = out.scale.as_mutable<float>();
    for (size_t s = 0; s < count; ++s) {
        scale[s] = scale_for(type, low[s], high[s]);
    }
    double wrong = 0;
    double all = 0;
    for (int64_t i = 0; i < weight.count(); ++i) {
        double x = weight.get_f64(i);
        float s = scale[static_cast<size_t>(index.at(i))];
        out.q.set_f64(i, quantised(type, static_cast<float>(x), s));
        double error = out.q.get_f64(i) * static_cast<double>(s) - x;
        wrong += error * error;
        all += x * x;
    }
    out.error = all > 0 ? wrong / all : 0;
    return out;
}

} // namespace ingot
