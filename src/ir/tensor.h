// SPDX-License-Identifier: Apache-2.0
// Tensor: a dense row-major array on the host: owned, mapped, or made when somebody needs it.
#pragma once

#include "base/dtype.h"
#include "ir/type.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace ingot {

class LazyBytes;
class Tensor;
class ThreadPool;
struct JoinedTensors;

/// Computes a tensor, by loops of that pool.
using MakeTensor = std::function<Tensor(ThreadPool& pool)>;

/// Value semantics with shared storage: copies refer to the same bytes. Elements are row major; the
/// packed types hold two elements a byte, low nibble first. Bytes of mapped and of lazy tensors are
/// read-only. Immutable use is thread safe.
///
/// The bytes of a lazy tensor are made by the first call that reads them, which takes the time and
/// throws the errors of that work, and others wait for it. A loop of a thread pool may not throw:
/// bytes(pool) in front of it makes them.
class Tensor {
public:
    Tensor() = default;
    /// Uninitialised storage, 64-byte aligned. Errors: OutOfMemory with shape and bytes.
    static Tensor empty(DType dtype, Shape shape);
    static Tensor zeros(DType dtype, Shape shape);
    /// Wraps memory that `owner` keeps alive. bytes.size() must equal the tensor's size.
    static Tensor wrap(DType dtype, Shape shape, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner);
    /// The same over writable memory.
    static Tensor wrap_mutable(DType dtype, Shape shape, std::span<std::byte> bytes,
                               std::shared_ptr<void> owner);
    /// A lazy tensor of the bytes that `make` gives, the same each time. It is called on the thread
    /// that needs them, once with success, and once more by loops of pools that need them
    /// meanwhile.
    static Tensor lazy(DType dtype, Shape shape, MakeTensor make);
    /// A lazy tensor of parts of one type that are joined along an axis, with equal sizes along the
    /// others. A row of a part has whole bytes. read() gathers its bytes without making them.
    static Tensor joined(std::vector<Tensor> parts, int64_t axis);
    template <class T>
    static Tensor of(DType dtype, Shape shape, std::span<const T> values) {
        Tensor t = empty(dtype, std::move(shape));
        for (size_t i = 0; i < values.size(); ++i) {
            if constexpr (std::is_floating_point_v<T>) {
                t.set_f64(static_cast<int64_t>(i), static_cast<double>(values[i]));
            } else {
                t.set_i64(static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
            }
        }
        return t;
    }
    static Tensor i64(const std::vector<int64_t>& values); // rank 1
    static Tensor scalar(DType dtype, double value);
    static Tensor scalar_i64(DType dtype, int64_t value);

    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }
    int rank() const { return static_cast<int>(shape_.size()); }
    int64_t count() const { return count_; }
    Type type() const { return {dtype_, to_dims(shape_)}; }
    std::span<const std::byte> bytes() const { return lazy_ == nullptr ? bytes_ : make_bytes(); }
    /// The same; lazy ones are made by loops of that pool.
    std::span<const std::byte> bytes(ThreadPool& pool) const;
    /// Writes the bytes from `offset` on.
    void read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const;
    bool is_lazy() const { return lazy_ != nullptr; }
    /// Whether there are bytes. The calls that follow make none.
    bool is_made() const;
    /// The size of bytes().
    size_t byte_count() const;
    /// Equal for tensors that share storage.
    const void* identity() const;
    /// The parts of a joined tensor that is not made; else null.
    const JoinedTensors* unjoined() const;
    bool writable() const { return mutable_ != nullptr; }
    /// Only for owned or wrap_mutable storage.
    std::span<std::byte> mutable_bytes();
    template <class T>
    std::span<const T> as() const {
        std::span<const std::byte> b = bytes();
        return {reinterpret_cast<const T*>(b.data()), b.size() / sizeof(T)};
    }
    template <class T>
    std::span<T> as_mutable() {
        std::span<std::byte> b = mutable_bytes();
        return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
    }
    /// Element access by linear index with conversion; any dtype. Slow: for oracles and tools.
    /// get_i64 of a float truncates; u64 above INT64_MAX wraps.
    double get_f64(int64_t i) const;
    int64_t get_i64(int64_t i) const;
    /// Integers wrap to the width; floats round to nearest even (fp8 saturates).
    void set_f64(int64_t i, double v);
    void set_i64(int64_t i, int64_t v);
    /// The same bytes under another shape of the same count.
    Tensor reshaped(Shape shape) const;
    /// A writable deep copy.
    Tensor clone() const;
    /// Bitwise equality of type and elements.
    bool operator==(const Tensor& o) const;
    bool defined() const { return count_ >= 0; }

private:
    std::span<const std::byte> make_bytes() const;

    DType dtype_ = DType::F32;
    Shape shape_;
    int64_t count_ = -1;
    const LazyBytes* lazy_ = nullptr; // which owner_ holds
    std::span<const std::byte> bytes_;
    std::byte* mutable_ = nullptr;
    std::shared_ptr<const void> owner_;
};

/// Product of a concrete shape. Errors: InvalidArgument on a negative size or overflow.
int64_t count_of(const Shape& shape);
/// Row-major strides in elements.
Shape strides_of(const Shape& shape);

/// Widens packed types to one element a byte (i4 -> i8, u4 -> u8, f4 -> f32); others unchanged.
Tensor unpacked(const Tensor& t);
} // namespace ingot
