// SPDX-License-Identifier: Apache-2.0
#include "ops/dft_basis.h"

#include "ops/ops.h"
#include "ops/primitives.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ingot {

namespace {

/// The error of cosines of large angles in f32, as a part of each column's magnitude.
constexpr double tolerance = 2e-3;
/// A column below this part of another one is taken for 0.
constexpr double negligible = 1e-3;
constexpr int64_t fewest_frequencies = 4;
constexpr int64_t fewest_samples = 8;
/// Between the factors of different samples; equal columns are no transform.
constexpr double least_spread = 0.5;

/// A strided part of the values: element (k, n) is frequency k of sample n.
struct Basis {
    const std::function<float(int64_t)>* value;
    int64_t first;
    int64_t frequencies;
    int64_t samples;
    int64_t frequency_stride;
    int64_t sample_stride;

    double at(int64_t k, int64_t n) const {
        return (*value)(first + k * frequency_stride + n * sample_stride);
    }
};

/// Solves x[i-1] + x[i+1] = c * x[i], which sinusoids of one step satisfy, over 0 < i < count - 1.
/// NaN where no number fits.
template <class Sequence>
double recurrence(int64_t count, const Sequence& x) {
    double product = 0;
    double square = 0;
    double largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(x(i)));
    }
    for (int64_t i = 1; i + 1 < count; ++i) {
        product += (x(i - 1) + x(i + 1)) * x(i);
        square += x(i) * x(i);
    }
    double c = product / square;
    if (!(square > 0) || !(std::abs(c) <= 2 + tolerance)) {
        return std::nan("");
    }
    for (int64_t i = 1; i + 1 < count; ++i) {
        if (!(std::abs(x(i - 1) + x(i + 1) - c * x(i)) <= tolerance * largest)) {
            return std::nan("");
        }
    }
    return c;
}

double magnitude(const Basis& b, int64_t n) {
    double largest = 0;
    for (int64_t k = 0; k < b.frequencies; ++k) {
        largest = std::max(largest, std::abs(b.at(k, n)));
    }
    return largest;
}

/// The part behind the last NaN before, and up to the first NaN after, that is longest.
std::span<const double> longest_run(const std::vector<double>& all) {
    std::span<const double> best;
    for (size_t i = 0, first = 0; i < all.size(); ++i) {
        first = std::isnan(all[i]) ? i + 1 : first;
        if (i + 1 > first + best.size()) {
            best = std::span(all).subspan(first, i + 1 - first);
        }
    }
    return best;
}

/// Rejects ordinary weights by a few elements, so that loading a model does not read all of them:
/// where a column inside the window starts with no sinusoid, the whole is none.
bool may_be_transform(const Basis& b) {
    constexpr int64_t few = 16;
    int64_t count = std::min(b.frequencies, few);
    auto column = [&](int64_t k) { return b.at(k, b.samples / 3); };
    bool is_zero = true;
    for (int64_t k = 0; k < count; ++k) {
        is_zero = is_zero && column(k) == 0;
    }
    return is_zero || !std::isnan(recurrence(count, column));
}

/// The window is a factor of the whole column, so that each column follows its own recurrence,
/// whose factor is 2 cos of the column's angle; angles of neighbours are evenly spaced.
bool is_transform(const Basis& b) {
    if (b.frequencies < fewest_frequencies || b.samples < fewest_samples || !may_be_transform(b)) {
        return false;
    }
    std::vector<double> factors;
    for (int64_t n = 0; n < b.samples; ++n) {
        factors.push_back(recurrence(b.frequencies, [&](int64_t k) { return b.at(k, n); }));
        // A window may be 0 at its ends, and sin(pi k) is, but for its rounding.
        if (std::isnan(factors.back()) &&
            magnitude(b, n) > negligible * magnitude(b, b.samples / 3)) {
            return false;
        }
    }
    std::span<const double> known = longest_run(factors);
    if (known.size() < 3) {
        return false;
    }
    auto [low, high] = std::minmax_element(known.begin(), known.end());
    double step = recurrence(static_cast<int64_t>(known.size()),
                             [&](int64_t i) { return known[static_cast<size_t>(i)]; });
    return *high - *low >= least_spread && !std::isnan(step);
}

/// Cosines and sines apart, one above the other, or alternating along the frequencies.
bool is_any_transform(const Basis& b) {
    if (is_transform(b)) {
        return true;
    }
    if (b.frequencies % 2 != 0) {
        return false;
    }
    Basis half = b;
    half.frequencies /= 2;
    Basis other = half;
    other.first += half.frequencies * half.frequency_stride;
    if (is_transform(half) && is_transform(other)) {
        return true;
    }
    half.frequency_stride *= 2;
    other = half;
    other.first += b.frequency_stride;
    return is_transform(half) && is_transform(other);
}

} // namespace

bool is_dft_basis(const float* values, std::span<const int64_t> shape,
                  std::span<const int64_t> strides) {
    return is_dft_basis([values](int64_t i) { return values[i]; }, shape, strides);
}

bool is_dft_basis(const std::function<float(int64_t)>& value, std::span<const int64_t> shape,
                  std::span<const int64_t> strides) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] != 1) {
            axes.push_back(i);
        }
    }
    if (axes.size() != 2) {
        return false;
    }
    Basis rows{&value, 0, shape[axes[0]], shape[axes[1]], strides[axes[0]], strides[axes[1]]};
    Basis columns{
        &value, 0, rows.samples, rows.frequencies, rows.sample_stride, rows.frequency_stride};
    return is_any_transform(rows) || is_any_transform(columns);
}

bool multiplies_by_dft_basis(const Graph& g, const Node& n) {
    if (!n.is(dot_def) && !n.is(ops::conv_def) && !n.is(ops::conv_transpose_def)) {
        return false;
    }
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](Value v) {
        const Tensor* t = g.constant(v);
        return t != nullptr && t->dtype() == DType::F32 &&
               is_dft_basis(t->as<float>().data(), t->shape(), strides_of(t->shape()));
    });
}

} // namespace ingot
