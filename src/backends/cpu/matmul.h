// SPDX-License-Identifier: Apache-2.0
// Blocked matrix products over operands of any strides and dtypes: c[i][j] = sum over k of a[i][k]
// * b[j][k], batched. Both sides are packed into panels that the inner kernel reads in sequence.
#pragma once

#include "backends/cpu/kernel.h"

#include <functional>
#include <memory>
#include <vector>

namespace ingot::cpu {

/// The element offsets of a side: element (i, k) of batch n is at batch[n] + outer[i] + depth[k].
struct MatmulSide {
    DType dtype = DType::F32;
    std::vector<int64_t> batch;
    std::vector<int64_t> outer;
    std::vector<int64_t> depth;
    /// The base of a constant operand, to be packed once; null for others.
    const std::byte* constant = nullptr;
    /// Identifies a constant side together with its address (strides and shape).
    std::string key;
};

struct MatmulSpec {
    MatmulSide a;
    MatmulSide b;
    DType dtype = DType::F32;   // of c
    bool in_order = false;      // sums do not depend on the number of rows
    std::vector<int64_t> batch; // offsets in c
    std::vector<int64_t> rows;
    std::vector<int64_t> columns;
};

/// A prepared product. Thread safe with different scratch memory.
class Matmul {
public:
    virtual ~Matmul() = default;
    virtual int64_t scratch_bytes() const = 0;
    /// a and b may be null where the side is constant.
    virtual void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch,
                     ThreadPool& pool) const noexcept = 0;
};

/// Floats accumulate in f32 (f64 in f64), integers of up to 8 bits in 32, others in 64 bits.
std::unique_ptr<Matmul> make_matmul(MatmulSpec spec, PackCache& packs);

} // namespace ingot::cpu
