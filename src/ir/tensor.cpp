// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"

#include "base/checked.h"
#include "base/error.h"

#include <cmath>
#include <cstring>
#include <new>

namespace ingot {

int64_t count_of(const Shape& shape) {
    int64_t n = 1;
    bool is_empty = false;
    for (int64_t d : shape) {
        is_empty = is_empty || d == 0;
        // Sizes beside a zero are bounded too: an operation may drop the zero.
        auto next = checked_mul(n, d == 0 ? 1 : d);
        require(d >= 0 && next && *next <= most_tensor_elements, ErrorCode::InvalidArgument,
                "shape ", shape,
                d < 0 ? " has a negative size"
                      : " has more than the 2^49 elements that are "
                        "possible, sizes of 0 not counted");
        n = *next;
    }
    return is_empty ? 0 : n;
}

Shape strides_of(const Shape& shape) {
    Shape s(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) {
        s[i - 1] = s[i] * shape[i]; // cannot overflow: count_of() checked the shape
    }
    return s;
}

Tensor Tensor::empty(DType dtype, Shape shape) {
    Tensor t;
    t.count_ = count_of(shape);
    t.dtype_ = dtype;
    t.shape_ = std::move(shape);
    auto bytes = static_cast<size_t>(byte_size(dtype, t.count_));
    size_t rounded = (bytes + 63) / 64 * 64;
    void* p = ::operator new (rounded == 0 ? 64 : rounded, std::align_val_t{64}, std::nothrow);
    require(p != nullptr, ErrorCode::OutOfMemory, "no memory for a tensor ", t.dtype_, t.shape_,
            " of ", bytes, " bytes");
    t.owner_ =
        std::shared_ptr<void>(p, [](void* q) { ::operator delete (q, std::align_val_t{64}); });
    t.mutable_ = static_cast<std::byte*>(p);
    t.bytes_ = {t.mutable_, bytes};
    if (is_packed(dtype) && bytes > 0) {
        t.mutable_[bytes - 1] = std::byte{0}; // the last byte may have an unused nibble
    }
    return t;
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
    Tensor t = empty(dtype, std::move(shape));
    std::memset(t.mutable_, 0, t.bytes_.size());
    return t;
}

Tensor Tensor::wrap(DType dtype, Shape shape, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
    Tensor t;
    t.count_ = count_of(shape);
    CHECK(static_cast<int64_t>(bytes.size()) == byte_size(dtype, t.count_), "tensor ", dtype, shape,
          " wraps ", bytes.size(), " bytes");
    t.dtype_ = dtype;
    t.shape_ = std::move(shape);
    t.bytes_ = bytes;
    t.owner_ = std::move(owner);
    return t;
}

Tensor Tensor::wrap_mutable(DType dtype, Shape shape, std::span<std::byte> bytes,
                            std::shared_ptr<void> owner) {
    Tensor t = wrap(dtype, std::move(shape), bytes, std::move(owner));
    t.mutable_ = bytes.data();
    return t;
}

Tensor Tensor::i64(const std::vector<int64_t>& values) {
    return of<int64_t>(DType::I64, {static_cast<int64_t>(values.size())}, values);
}

Tensor Tensor::scalar(DType dtype, double value) {
    Tensor t = empty(dtype, {});
    t.set_f64(0, value);
    return t;
}

Tensor Tensor::scalar_i64(DType dtype, int64_t value) {
    Tensor t = empty(dtype, {});
    t.set_i64(0, value);
    return t;
}

std::span<std::byte> Tensor::mutable_bytes() {
    CHECK(mutable_ != nullptr, "writing to a read-only tensor");
    return {mutable_, bytes_.size()};
}

namespace {

template <class T>
T load(const std::byte* p, int64_t i) {
    T v;
    std::memcpy(&v, p + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return v;
}

template <class T>
void store(std::byte* p, int64_t i, T v) {
    std::memcpy(p + i * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

unsigned nibble(const std::byte* p, int64_t i) {
    return (std::to_integer<unsigned>(p[i / 2]) >> (i % 2 * 4)) & 15U;
}

void set_nibble(std::byte* p, int64_t i, unsigned v) {
    unsigned old = std::to_integer<unsigned>(p[i / 2]);
    unsigned shift = static_cast<unsigned>(i % 2 * 4);
    p[i / 2] = static_cast<std::byte>((old & ~(15U << shift)) | ((v & 15U) << shift));
}

// Saturates where a plain conversion is undefined.
int64_t truncate(double v) {
    if (std::isnan(v)) {
        return 0;
    }
    if (v >= 9223372036854775808.0) {
        return v >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(v));
    }
    return v <= -9223372036854775808.0 ? INT64_MIN : static_cast<int64_t>(v);
}

} // namespace

double Tensor::get_f64(int64_t i) const {
    const std::byte* p = bytes().data();
    switch (dtype_) {
    case DType::F64:
        return load<double>(p, i);
    case DType::F32:
        return static_cast<double>(load<float>(p, i));
    case DType::F16:
        return static_cast<double>(load<f16>(p, i));
    case DType::BF16:
        return static_cast<double>(load<bf16>(p, i));
    case DType::F8E4M3:
        return static_cast<double>(f32_from_f8e4m3(load<uint8_t>(p, i)));
    case DType::F8E5M2:
        return static_cast<double>(f32_from_f8e5m2(load<uint8_t>(p, i)));
    case DType::F4E2M1:
        return static_cast<double>(f32_from_f4e2m1(static_cast<uint8_t>(nibble(p, i))));
    case DType::U64:
        return static_cast<double>(load<uint64_t>(p, i));
    default:
        return static_cast<double>(get_i64(i));
    }
}

int64_t Tensor::get_i64(int64_t i) const {
    const std::byte* p = bytes().data();
    switch (dtype_) {
    case DType::Bool:
        return load<uint8_t>(p, i) != 0 ? 1 : 0;
    case DType::I4:
        return static_cast<int64_t>(nibble(p, i) ^ 8U) - 8;
    case DType::U4:
        return static_cast<int64_t>(nibble(p, i));
    case DType::I8:
        return load<int8_t>(p, i);
    case DType::U8:
        return load<uint8_t>(p, i);
    case DType::I16:
        return load<int16_t>(p, i);
    case DType::U16:
        return load<uint16_t>(p, i);
    case DType::I32:
        return load<int32_t>(p, i);
    case DType::U32:
        return load<uint32_t>(p, i);
    case DType::I64:
        return load<int64_t>(p, i);
    case DType::U64:
        return static_cast<int64_t>(load<uint64_t>(p, i));
    default:
        return truncate(get_f64(i));
    }
}

void Tensor::set_f64(int64_t i, double v) {
    std::byte* p = mutable_;
    CHECK(p != nullptr, "writing to a read-only tensor");
    switch (dtype_) {
    case DType::F64:
        return store(p, i, v);
    case DType::F32:
        return store(p, i, static_cast<float>(v));
    case DType::F16:
        return store(p, i, f16_from_f64(v));
    case DType::BF16:
        return store(p, i, bf16_from_f64(v));
    case DType::F8E4M3:
        return store(p, i, f8e4m3_from_f32(static_cast<float>(v)));
    case DType::F8E5M2:
        return store(p, i, f8e5m2_from_f32(static_cast<float>(v), !std::isinf(v)));
    case DType::F4E2M1:
        return set_nibble(p, i, f4e2m1_from_f32(static_cast<float>(v)));
    case DType::Bool:
        return store(p, i, static_cast<uint8_t>(v != 0.0));
    default:
        return set_i64(i, truncate(v));
    }
}

void Tensor::set_i64(int64_t i, int64_t v) {
    std::byte* p = mutable_;
    CHECK(p != nullptr, "writing to a read-only tensor");
    switch (dtype_) {
    case DType::Bool:
        return store(p, i, static_cast<uint8_t>(v != 0));
    case DType::I4:
    case DType::U4:
        return set_nibble(p, i, static_cast<unsigned>(v & 15));
    case DType::I8:
    case DType::U8:
        return store(p, i, static_cast<uint8_t>(v));
    case DType::I16:
    case DType::U16:
        return store(p, i, static_cast<uint16_t>(v));
    case DType::I32:
    case DType::U32:
        return store(p, i, static_cast<uint32_t>(v));
    case DType::I64:
    case DType::U64:
        return store(p, i, v);
    default:
        return set_f64(i, static_cast<double>(v));
    }
}

Tensor Tensor::reshaped(Shape shape) const {
    CHECK(count_of(shape) == count_, "reshape of ", shape_, " to ", shape);
    Tensor t = *this;
    t.shape_ = std::move(shape);
    return t;
}

Tensor Tensor::clone() const {
    Tensor t = empty(dtype_, shape_);
    std::span<const std::byte> from = bytes();
    if (!from.empty()) {
        std::memcpy(t.mutable_, from.data(), from.size());
    }
    return t;
}

bool Tensor::operator==(const Tensor& o) const {
    return dtype_ == o.dtype_ && count_ == o.count_ && shape_ == o.shape_ &&
           (identity() == o.identity() || byte_count() == 0 ||
            std::memcmp(bytes().data(), o.bytes().data(), byte_count()) == 0);
}

Tensor unpacked(const Tensor& t) {
    if (!is_packed(t.dtype())) {
        return t;
    }
    DType to = t.dtype() == DType::I4 ? DType::I8 : t.dtype() == DType::U4 ? DType::U8 : DType::F32;
    Tensor out = Tensor::empty(to, t.shape());
    for (int64_t i = 0; i < t.count(); ++i) {
        if (to == DType::F32) {
            out.set_f64(i, t.get_f64(i));
        } else {
            out.set_i64(i, t.get_i64(i));
        }
    }
    return out;
}

} // namespace ingot
