// SPDX-License-Identifier: Apache-2.0
// Text that splits a linear index into coordinates; the sizes are kernel arguments. Uses "math" and
// "strided" (strided.cuh).
#pragma once

#include "base/integers.h"
#include "kernels/common/signature.h"

#include <string>
#include <string_view>

namespace ingot::kernels {

/// Row-major coordinates of an index over `sizes`. Below 2^31 elements it divides by
/// multiplication.
class IndexText {
public:
    /// `name` starts the names of the arguments.
    IndexText(Shape sizes, bool wide, std::string_view name = "d");

    /// The sizes in the text, all of type(): d1, d1m, d1h, ...
    struct Number {
        std::string name;
        uint64_t value;
    };
    std::vector<Number> numbers() const;
    /// Adds these as parameters.
    void add(Signature& s) const;
    /// Adds an index count.
    void add_count(Signature& s, std::string name, int64_t n) const;
    /// Statements that declare constants `x`0, `x`1, ... from the expression `index`.
    std::string split(std::string_view index, std::string_view x = "x") const;
    /// "u32" or "u64"
    std::string_view type() const { return wide_ ? "u64" : "u32"; }
    int rank() const { return static_cast<int>(sizes_.size()); }

private:
    Shape sizes_;
    bool wide_;
    std::string name_;
};

/// "(i32)x0 * a0 + (i32)x1 * a1"; a stride named "0" or "1" is left out or not multiplied.
std::string offset_text(std::string_view type, std::span<const std::string> coordinates,
                        std::span<const std::string> strides);
/// The distance between the first and the last element of a view, at least 0.
int64_t span_of(const View& v);
/// Blocks of `threads` for n threads.
inline int64_t blocks_for(int64_t n, int64_t threads = 256) {
    return div_up(n, threads);
}

} // namespace ingot::kernels
