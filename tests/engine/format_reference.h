// SPDX-License-Identifier: Apache-2.0
// The positions of a tensor's elements in each format of TensorRT, by plain loops over its
// coordinates; independent of src/engine/io_format.h.
#pragma once

#include "ir/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace ingot::test {

struct Layout {
    std::string_view name;
    int channel_axis = 3; // from the end
    int64_t vector = 1;
    bool minor = false; // [..][H][W][C] padded, else [..][C / vector][H][W][vector]
    std::vector<DType> types;
};

inline const std::vector<Layout>& layouts() {
    using enum DType;
    static const std::vector<Layout> all = {
        {"chw2", 3, 2, false, {F16, BF16}},
        {"chw4", 3, 4, false, {F16, I8}},
        {"chw16", 3, 16, false, {F16}},
        {"chw32", 3, 32, false, {F32, F16, I8}},
        {"hwc", 3, 1, true, {F32, U8}},
        {"hwc8", 3, 8, true, {F16, BF16}},
        {"hwc16", 3, 16, true, {F16, I8, F8E4M3}},
        {"dhwc", 4, 1, true, {F32}},
        {"dhwc8", 4, 8, true, {F16, BF16}},
        {"cdhw32", 4, 32, false, {F16, I8}},
    };
    return all;
}

inline const Layout& layout(std::string_view name) {
    for (const Layout& l : layouts()) {
        if (l.name == name) {
            return l;
        }
    }
    ADD_FAILURE() << "no layout " << name;
    return layouts()[0];
}

/// A tensor as [outer, channels, inner].
struct Sizes {
    int64_t outer = 1;
    int64_t channels = 1;
    int64_t inner = 1;
    int64_t vectors = 1;

    Sizes(const Layout& l, const Shape& shape) {
        auto axis = static_cast<int>(shape.size()) - l.channel_axis;
        for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
            (i < axis ? outer : i > axis ? inner : channels) *= shape[static_cast<size_t>(i)];
        }
        vectors = (channels + l.vector - 1) / l.vector;
    }
    /// In elements.
    int64_t place_of(const Layout& l, int64_t n, int64_t c, int64_t i) const {
        return l.minor ? (n * inner + i) * vectors * l.vector + c
                       : ((n * vectors + c / l.vector) * inner + i) * l.vector + c % l.vector;
    }
    int64_t room(const Layout& l) const { return outer * vectors * l.vector * inner; }
};

inline size_t array_bytes(const Layout& l, DType dtype, const Shape& shape) {
    return static_cast<size_t>(Sizes(l, shape).room(l) * bit_width(dtype) / 8);
}

/// Writes a tensor as its array; bytes of no element get `rest`.
inline void store(const Layout& l, const Tensor& t, std::span<std::byte> to, int rest) {
    ASSERT_EQ(to.size(), array_bytes(l, t.dtype(), t.shape()));
    std::memset(to.data(), rest, to.size());
    Sizes s(l, t.shape());
    auto width = static_cast<size_t>(bit_width(t.dtype()) / 8);
    size_t from = 0;
    for (int64_t n = 0; n < s.outer; ++n) {
        for (int64_t c = 0; c < s.channels; ++c) {
            for (int64_t i = 0; i < s.inner; ++i, ++from) {
                std::memcpy(to.data() + static_cast<size_t>(s.place_of(l, n, c, i)) * width,
                            t.bytes().data() + from * width, width);
            }
        }
    }
}

/// The sum over the channels, in f32.
inline Tensor channel_sums(const Layout& l, const Tensor& t) {
    Sizes s(l, t.shape());
    Shape shape = t.shape();
    shape.erase(shape.end() - l.channel_axis);
    Tensor out = Tensor::zeros(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        int64_t to = i / (s.channels * s.inner) * s.inner + i % s.inner;
        out.set_f64(to, out.get_f64(to) + t.get_f64(i));
    }
    return out;
}

/// Small numbers that every type holds, and their doubles; neighbours differ.
inline Tensor counting(DType dtype, const Shape& shape) {
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>((i * 5 + i / 7) % 8));
    }
    return t;
}

} // namespace ingot::test
