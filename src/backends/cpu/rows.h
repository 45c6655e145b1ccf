// SPDX-License-Identifier: Apache-2.0
// Steps on dense rows of floats, one row at a time; small floats are widened to f32.
#pragma once

#include "backends/cpu/expr_program.h"
#include "backends/cpu/kernel.h"

#include <algorithm>

namespace ingot::cpu {

constexpr int64_t row_grain_elements = 8 << 10;

inline bool is_small_float(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

/// Calls f(const float* in, float* out, index) for each row of `size` elements. For f32, in and out
/// point into the tensors; otherwise both are the row in scratch memory (row_scratch_bytes of it).
struct RowLoop {
    Operand x;
    Operand out;
    int64_t rows = 0;
    int64_t size = 0;

    int64_t scratch_bytes() const { return x.dtype == DType::F32 ? 0 : rows * size * 4; }

    template <class F>
    void run(const RunContext& c, float* scratch, const F& f) const {
        int64_t grain = std::max<int64_t>(1, row_grain_elements / std::max<int64_t>(size, 1));
        if (x.dtype == DType::F32) {
            c.pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    f(c.at<const float>(x) + r * size, c.at<float>(out) + r * size, r);
                }
            });
            return;
        }
        MapLoop load = load_loop(x.dtype);
        MapLoop store = store_loop(out.dtype);
        c.pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                float* row = scratch + r * size;
                load(row, c.bytes(x) + r * size * 2, nullptr, nullptr, size);
                f(row, row, r);
                store(c.bytes(out) + r * size * 2, row, nullptr, nullptr, size);
            }
        });
    }
};

/// A vector of f32 from an operand of any small float type that broadcasts to `shape`.
class FloatVector {
public:
    FloatVector() = default;
    FloatVector(const Operand& o, const Shape& shape);
    /// Scratch elements that `get` needs; 0 when the operand can be read in place.
    int64_t scratch() const { return direct_ ? 0 : count_; }
    const float* get(const RunContext& c, float* memory) const;

private:
    Operand operand_;
    std::vector<int64_t> offsets_;
    int64_t count_ = 0;
    bool direct_ = false;
    MapLoop load_ = nullptr;
};

} // namespace ingot::cpu
