// SPDX-License-Identifier: Apache-2.0
#include "lower/signed_weight.h"

#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

std::optional<std::vector<int64_t>> zeros_of(const Graph& g, const Dequantised& x) {
    if (!x.zero.valid()) {
        return std::vector<int64_t>{0};
    }
    const Tensor* t = repeated_constant(g, x.zero);
    if (t == nullptr || !is_integer(t->dtype()) || t->count() == 0) {
        return std::nullopt;
    }
    std::vector<int64_t> out;
    for (int64_t i = 0; i < t->count(); ++i) {
        out.push_back(t->get_i64(i));
    }
    return out;
}

bool all_equal(const std::vector<int64_t>& v, int64_t x) {
    return std::all_of(v.begin(), v.end(), [x](int64_t y) { return y == x; });
}

namespace {

/// Visits the elements of a tensor as (element, position along the axis).
template <class F>
void for_positions(const Tensor& t, int64_t axis, const F& f) {
    int64_t inner = 1;
    for (int64_t i = axis + 1; i < t.rank(); ++i) {
        inner *= t.shape()[static_cast<size_t>(i)];
    }
    int64_t size = t.shape()[static_cast<size_t>(axis)];
    int64_t at = 0;
    for (int64_t count = t.count(); at < count;) {
        for (int64_t c = 0; c < size; ++c) {
            for (int64_t i = 0; i < inner; ++i) {
                f(at++, c);
            }
        }
    }
}

/// Whether signed bytes hold every element less a number.
bool fits_signed(const Tensor& t, int64_t zero) {
    int least = 255;
    int most = -128;
    for (std::byte b : t.bytes()) {
        auto raw = static_cast<uint8_t>(b);
        int x = t.dtype() == DType::I8 ? static_cast<int8_t>(raw) : raw;
        least = std::min(least, x);
        most = std::max(most, x);
    }
    return t.count() == 0 || (least - zero >= -128 && most - zero <= 127);
}

/// The weight less `zeros`, if signed bytes hold that.
std::optional<SignedWeight> shifted_weight(Graph& g, const Dequantised& w, int64_t axis,
                                           const std::vector<int64_t>& zeros) {
    const Tensor* t = g.constant(w.q);
    if (zeros.size() == 1 && !fits_signed(*t, zeros[0])) {
        return std::nullopt;
    }
    bool is_signed = t->dtype() == DType::I8;
    bool stays = is_signed && all_equal(zeros, 0);
    const std::byte* from = t->bytes().data();
    Tensor shifted = stays ? *t : Tensor::empty(DType::I8, t->shape());
    std::byte* to = stays ? nullptr : shifted.mutable_bytes().data();
    SignedWeight out;
    out.sums.resize(static_cast<size_t>(t->shape()[static_cast<size_t>(axis)]));
    bool fits = true;
    for_positions(*t, axis, [&](int64_t at, int64_t c) {
        auto channel = static_cast<size_t>(c);
        auto raw = static_cast<uint8_t>(from[at]);
        int64_t x = is_signed ? static_cast<int8_t>(raw) : raw;
        x -= zeros.size() == 1 ? zeros[0] : zeros[channel];
        out.sums[channel] += x;
        fits = fits && x >= -128 && x <= 127;
        if (to != nullptr) {
            to[at] = static_cast<std::byte>(x);
        }
    });
    if (!fits) {
        return std::nullopt;
    }
    out.v = stays ? w.q : ops::constant(g, std::move(shifted));
    return out;
}

} // namespace

std::optional<SignedWeight> signed_weight(Graph& g, const Dequantised& w, int64_t axis,
                                          ZeroPoints zero_points) {
    const Tensor* t = g.constant(w.q);
    auto zeros = zeros_of(g, w);
    if (t == nullptr || !zeros || !is_byte(t->dtype())) {
        return std::nullopt;
    }
    auto out = shifted_weight(g, w, axis, *zeros);
    if (!out && zero_points == ZeroPoints::Kept) {
        int64_t middle = t->dtype() == DType::U8 ? 128 : 0;
        out = shifted_weight(g, w, axis, {middle});
        for (int64_t zero : *zeros) {
            out->zeros.push_back(zero - middle);
        }
    }
    return out;
}

} // namespace ingot::plan
