// SPDX-License-Identifier: Apache-2.0
// Shared by the reference evaluations of src/ops: bulk conversion of elements to the compute type,
// walks over shapes, movement of packed elements, and uniform checks.
#pragma once

#include "base/error.h"
#include "ir/expr_math.h"
#include "ir/op.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::eval_util {

// --- checks ----------------------------------------------------------------------------------

inline void require_inputs(std::string_view op, std::span<const Type> in, size_t count) {
    require(in.size() == count, ErrorCode::InvalidModel, op, ": got ", in.size(),
            " inputs, expected ", count);
}

inline void require_axis(std::string_view op, int64_t axis, const Type& x) {
    require(axis >= 0 && axis < x.rank(), ErrorCode::InvalidModel, op, ": axis ", axis,
            " is outside ", x, ", expected 0 <= axis < ", x.rank());
}

inline void require_scalar(std::string_view op, std::string_view what, const Type& got,
                           DType dtype) {
    require(got.dtype == dtype && got.dims.empty(), ErrorCode::InvalidModel, op, ": ", what, " is ",
            got, ", expected ", Type{dtype, {}});
}

/// False only when the sizes provably differ at compile time; the run checks the rest.
inline bool may_agree(const Dim& a, const Dim& b) {
    return !a.is_const() || !b.is_const() || a == b;
}

/// The more precisely known of two sizes that must agree.
inline const Dim& known_one(const Dim& a, const Dim& b) {
    return !a.is_const() && b.is_const() ? b : a;
}

inline bool is_index(DType t) {
    return t == DType::I64 || t == DType::I32;
}

/// Row-major coordinates of a linear index.
inline Shape coordinates(int64_t linear, const Shape& shape) {
    Shape out(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
        out[i] = linear % shape[i];
        linear /= shape[i];
    }
    return out;
}

// --- shapes ----------------------------------------------------------------------------------

/// A shape seen from one axis: [outer, size, inner].
struct AxisSplit {
    int64_t outer = 1;
    int64_t size = 1;
    int64_t inner = 1;
};

inline AxisSplit split_at(const Shape& shape, int64_t axis) {
    auto at = static_cast<size_t>(axis);
    AxisSplit s;
    s.size = shape[at];
    for (size_t i = 0; i < shape.size(); ++i) {
        (i < at ? s.outer : s.inner) *= i == at ? 1 : shape[i];
    }
    return s;
}

/// Walks a shape in row-major order and tracks an offset for each of K lists of strides.
template <size_t K>
class Walk {
public:
    Walk(Shape shape, std::array<Shape, K> strides)
        : shape_(std::move(shape)), strides_(std::move(strides)), at_(shape_.size(), 0),
          left_(count_of(shape_)) {}
    bool done() const { return left_ == 0; }
    int64_t offset(size_t k) const { return offsets_[k]; }
    const Shape& at() const { return at_; }
    void next() {
        --left_;
        for (size_t i = shape_.size(); i-- > 0;) {
            if (++at_[i] < shape_[i]) {
                for (size_t k = 0; k < K; ++k) {
                    offsets_[k] += strides_[k][i];
                }
                return;
            }
            for (size_t k = 0; k < K; ++k) {
                offsets_[k] -= strides_[k][i] * (shape_[i] - 1);
            }
            at_[i] = 0;
        }
    }

private:
    Shape shape_;
    std::array<Shape, K> strides_;
    Shape at_;
    std::array<int64_t, K> offsets_{};
    int64_t left_ = 0;
};

// --- elements, converted in bulk -----------------------------------------------------------------

template <class T>
struct Tag {
    using type = T;
};

/// Calls f(Tag<W>) with the oracle's compute type: double for floats, uint64_t for u64, int64_t for
/// all others.
template <class F>
decltype(auto) with_wide(DType t, F&& f) {
    if (is_float(t)) {
        return f(Tag<double>{});
    }
    return t == DType::U64 ? f(Tag<uint64_t>{}) : f(Tag<int64_t>{});
}

/// Calls f(Tag<S>) with the storage type of an unpacked dtype's elements; Bool gives bool. False
/// for packed types.
template <class F>
bool with_storage(DType t, F&& f) {
    switch (t) {
    case DType::Bool:
        return f(Tag<bool>{}), true;
    case DType::I8:
        return f(Tag<int8_t>{}), true;
    case DType::U8:
        return f(Tag<uint8_t>{}), true;
    case DType::I16:
        return f(Tag<int16_t>{}), true;
    case DType::U16:
        return f(Tag<uint16_t>{}), true;
    case DType::I32:
        return f(Tag<int32_t>{}), true;
    case DType::U32:
        return f(Tag<uint32_t>{}), true;
    case DType::I64:
        return f(Tag<int64_t>{}), true;
    case DType::U64:
        return f(Tag<uint64_t>{}), true;
    case DType::F8E4M3:
        return f(Tag<f8e4m3>{}), true;
    case DType::F8E5M2:
        return f(Tag<f8e5m2>{}), true;
    case DType::BF16:
        return f(Tag<bf16>{}), true;
    case DType::F16:
        return f(Tag<f16>{}), true;
    case DType::F32:
        return f(Tag<float>{}), true;
    case DType::F64:
        return f(Tag<double>{}), true;
    default:
        return false;
    }
}

namespace detail {

template <class W, class S>
W widen_one(const std::byte* p) {
    if constexpr (std::is_same_v<S, bool>) {
        return static_cast<W>(*p != std::byte{0});
    } else {
        S v;
        std::memcpy(&v, p, sizeof(S));
        if constexpr (std::is_same_v<S, f8e4m3>) {
            return static_cast<W>(f32_from_f8e4m3(v.bits));
        } else if constexpr (std::is_same_v<S, f8e5m2>) {
            return static_cast<W>(f32_from_f8e5m2(v.bits));
        } else if constexpr (std::is_same_v<S, f16> || std::is_same_v<S, bf16>) {
            return static_cast<W>(static_cast<float>(v));
        } else {
            return static_cast<W>(v);
        }
    }
}

template <class W, class S>
void narrow_one(W v, std::byte* p) {
    if constexpr (std::is_same_v<S, bool>) {
        *p = std::byte{static_cast<uint8_t>(v != W(0) ? 1 : 0)};
    } else {
        S s;
        if constexpr (std::is_same_v<S, f8e4m3>) {
            s.bits = f8e4m3_from_f32(static_cast<float>(v));
        } else if constexpr (std::is_same_v<S, f8e5m2>) {
            // An infinity stays one: a cast that saturates has left none.
            s.bits = f8e5m2_from_f32(static_cast<float>(v), !std::isinf(static_cast<double>(v)));
        } else if constexpr (std::is_same_v<S, f16> || std::is_same_v<S, bf16>) {
            s = S(static_cast<double>(v));
        } else {
            s = static_cast<S>(v);
        }
        std::memcpy(p, &s, sizeof(S));
    }
}

} // namespace detail

/// Elements begin, begin + 1, ... of t, converted to W. W must hold the dtype's kind: a float type
/// for floats, an integer type (modulo its width) for all others.
template <class W>
void read(const Tensor& t, int64_t begin, std::span<W> out) {
    CHECK(is_float(t.dtype()) == std::is_floating_point_v<W>, "reading ", t.dtype());
    bool whole = with_storage(t.dtype(), [&](auto tag) {
        using S = typename decltype(tag)::type;
        constexpr size_t size = std::is_same_v<S, bool> ? 1 : sizeof(S);
        const std::byte* p = t.bytes().data() + static_cast<size_t>(begin) * size;
        for (size_t i = 0; i < out.size(); ++i) {
            out[i] = detail::widen_one<W, S>(p + i * size);
        }
    });
    for (size_t i = 0; !whole && i < out.size(); ++i) {
        int64_t at = begin + static_cast<int64_t>(i);
        if constexpr (std::is_floating_point_v<W>) {
            out[i] = static_cast<W>(t.get_f64(at));
        } else {
            out[i] = static_cast<W>(t.get_i64(at));
        }
    }
}

template <class W>
std::vector<W> read_all(const Tensor& t) {
    std::vector<W> out(static_cast<size_t>(t.count()));
    read(t, 0, std::span<W>(out));
    return out;
}

/// The inverse of read: rounds to nearest even, or wraps to the width.
template <class W>
void write(std::span<const W> in, int64_t begin, Tensor& t) {
    CHECK(is_float(t.dtype()) == std::is_floating_point_v<W>, "writing ", t.dtype());
    std::byte* base = t.mutable_bytes().data();
    bool whole = with_storage(t.dtype(), [&](auto tag) {
        using S = typename decltype(tag)::type;
        constexpr size_t size = std::is_same_v<S, bool> ? 1 : sizeof(S);
        std::byte* p = base + static_cast<size_t>(begin) * size;
        for (size_t i = 0; i < in.size(); ++i) {
            detail::narrow_one<W, S>(in[i], p + i * size);
        }
    });
    for (size_t i = 0; !whole && i < in.size(); ++i) {
        int64_t at = begin + static_cast<int64_t>(i);
        if constexpr (std::is_floating_point_v<W>) {
            t.set_f64(at, static_cast<double>(in[i]));
        } else {
            t.set_i64(at, static_cast<int64_t>(in[i]));
        }
    }
    if (!whole && t.count() % 2 != 0 && begin + static_cast<int64_t>(in.size()) == t.count()) {
        std::byte& last = t.mutable_bytes().back();
        last &= std::byte{15}; // so that equal tensors have equal bytes
    }
}

/// Calls f(begin, span) over all elements of t, widened, in chunks of row-major order.
template <class W, class F>
void for_chunks(const Tensor& t, F&& f) {
    std::array<W, 1024> buffer;
    for (int64_t begin = 0; begin < t.count();) {
        auto n = static_cast<size_t>(std::min<int64_t>(t.count() - begin, 1024));
        std::span<W> part(buffer.data(), n);
        read(t, begin, part);
        f(begin, std::span<const W>(part));
        begin += static_cast<int64_t>(n);
    }
}

// --- elements, moved ---------------------------------------------------------------------------

/// A tensor with elements of whole bytes: packed ones become u8 that hold the bits of one element.
inline Tensor byte_elements(const Tensor& t) {
    if (!is_packed(t.dtype())) {
        return t;
    }
    Tensor out = Tensor::empty(DType::U8, t.shape());
    std::span<const uint8_t> from = t.as<uint8_t>();
    std::span<uint8_t> to = out.as_mutable<uint8_t>();
    for (size_t i = 0; i < to.size(); ++i) {
        to[i] = static_cast<uint8_t>((from[i / 2] >> (i % 2 * 4)) & 15U);
    }
    return out;
}

/// Storage for results that are moved as whole bytes into `out`: `out` itself unless it is packed.
/// Call store_bytes(storage, out) afterwards.
inline Tensor byte_target(const Tensor& out) {
    return is_packed(out.dtype()) ? Tensor::empty(DType::U8, out.shape()) : out;
}

inline void store_bytes(const Tensor& moved, Tensor& out) {
    if (!is_packed(out.dtype())) {
        return;
    }
    std::span<const uint8_t> from = moved.as<uint8_t>();
    std::span<uint8_t> to = out.as_mutable<uint8_t>();
    std::fill(to.begin(), to.end(), uint8_t{0});
    for (size_t i = 0; i < from.size(); ++i) {
        to[i / 2] = static_cast<uint8_t>(to[i / 2] | ((from[i] & 15U) << (i % 2 * 4)));
    }
}

/// Returns a result whose size the op has computed: assigns out[i], or fills existing storage.
inline void deliver(EvalArgs& args, size_t i, const Tensor& result, std::string_view op) {
    Tensor& out = args.out[i];
    if (!out.defined()) {
        out = result;
        return;
    }
    require(out.shape() == result.shape() && out.dtype() == result.dtype(),
            ErrorCode::InvalidArgument, op, ": result ", i, " is ", result.type(), ", expected ",
            out.type());
    if (!result.bytes().empty()) {
        std::memcpy(out.mutable_bytes().data(), result.bytes().data(), result.bytes().size());
    }
}

/// All indices; errors when one is outside [0, size).
inline std::vector<int64_t> checked_indices(std::string_view op, const Tensor& indices,
                                            int64_t size, int64_t axis) {
    auto out = read_all<int64_t>(indices);
    for (size_t i = 0; i < out.size(); ++i) {
        require(out[i] >= 0 && out[i] < size, ErrorCode::InvalidArgument, op, ": index ", out[i],
                " at position ", coordinates(static_cast<int64_t>(i), indices.shape()),
                " is outside axis ", axis, " of size ", size);
    }
    return out;
}

// --- combining functions -------------------------------------------------------------------------

struct SumOf {
    template <class W>
    W operator()(W a, W b) const {
        return expr_math::wrapping_add(a, b);
    }
};
struct ProductOf {
    template <class W>
    W operator()(W a, W b) const {
        return expr_math::wrapping_mul(a, b);
    }
};
struct MinOf {
    template <class W>
    W operator()(W a, W b) const {
        return expr_math::nan_min(a, b);
    }
};
struct MaxOf {
    template <class W>
    W operator()(W a, W b) const {
        return expr_math::nan_max(a, b);
    }
};

/// Errors unless `fn` is "sum", "prod", "min" or "max" and defined for this dtype.
inline void require_combine(std::string_view op, std::string_view fn, const Type& x) {
    require(fn == "sum" || fn == "prod" || fn == "min" || fn == "max", ErrorCode::InvalidModel, op,
            ": fn is ", quote(fn), ", expected sum, prod, min or max");
    require(x.dtype != DType::Bool || fn == "min" || fn == "max", ErrorCode::InvalidModel, op, ": ",
            fn, " of ", x, " is not defined, expected min (all), max (any) or a number type");
}

/// Calls f with the function object named `fn`.
template <class F>
void with_combine(std::string_view fn, F&& f) {
    if (fn == "sum") {
        f(SumOf{});
    } else if (fn == "prod") {
        f(ProductOf{});
    } else if (fn == "min") {
        f(MinOf{});
    } else {
        f(MaxOf{});
    }
}

/// The result over no elements: 0, 1, the largest and the smallest value of the dtype.
template <class W>
W combine_identity(std::string_view fn, DType t) {
    if (fn == "sum" || fn == "prod") {
        return W(fn == "sum" ? 0 : 1);
    }
    bool largest = fn == "min";
    if constexpr (std::is_floating_point_v<W>) {
        W inf = std::numeric_limits<W>::infinity();
        return largest ? inf : -inf;
    } else {
        int bits = t == DType::Bool ? 1 : bit_width(t);
        CHECK(bits >= 1 && bits <= 64, "limits of ", t);
        uint64_t ones = UINT64_MAX >> (64 - bits);
        if (!is_signed(t)) {
            return largest ? static_cast<W>(ones) : W(0);
        }
        auto top = static_cast<int64_t>(ones >> 1);
        return static_cast<W>(largest ? top : -top - 1);
    }
}

} // namespace ingot::eval_util
