// SPDX-License-Identifier: Apache-2.0
// StoredConstant: the contents of a constant's buffer. They may be elements of a tensor in another
// order, gathered only where a device needs them: a plan needs no bytes.
#pragma once

#include "base/thread_pool.h"
#include "plan/kernel.h"

#include <compare>

namespace ingot::plan {

/// Copies share the bytes. Immutable use is thread safe.
class StoredConstant {
public:
    StoredConstant() = default;
    StoredConstant(Tensor bytes) : source_(std::move(bytes)) {} // NOLINT: tensors convert
    /// The elements of a view of `source`, densely in that order. `view` is one of its bytes.
    StoredConstant(Tensor source, const Operand& view, const Order& order);

    DType dtype() const;
    /// The outermost axis of the memory comes first.
    const Shape& shape() const;
    size_t size() const; // in bytes
    bool is_gathered() const { return gather_ != nullptr; }
    /// The tensor itself, or the one that elements are gathered from.
    const Tensor& source() const { return source_; }
    /// The view and the order that it is gathered by; only where it is.
    const Operand& view() const;
    const Order& order() const;

    /// Writes a part of the contents, which begins at that byte. It has whole elements.
    void read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const;
    /// The contents where they lie in memory as they are; null: read() gathers them.
    const std::byte* in_place(ThreadPool& pool) const;
    /// The size, at most `most` (which is at least 4096), of parts that are read fast.
    size_t part_bytes(size_t most) const;
    /// Where an element of the contents lies in the source, in elements of dtype(), which has whole
    /// bytes.
    int64_t source_index(int64_t element) const;

    /// Equal: the same elements of one source, whatever view they were gathered by.
    friend std::strong_ordering operator<=>(const StoredConstant& a, const StoredConstant& b);
    friend bool operator==(const StoredConstant& a, const StoredConstant& b) {
        return (a <=> b) == 0; // NOLINT(modernize-use-nullptr)
    }

private:
    struct Gather;
    Tensor source_;
    std::shared_ptr<const Gather> gather_; // null: the tensor as it is
};

} // namespace ingot::plan
