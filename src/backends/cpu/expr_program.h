// SPDX-License-Identifier: Apache-2.0
// ExprProgram: a scalar expression as a list of vector loops over blocks of elements.
#pragma once

#include "backends/cpu/simd/simd.h"

#include <array>
#include <cstddef>
#include <vector>

namespace ingot::cpu {

/// out[i] = f(a[i], b[i], c[i]) for any function and compute type; the vector form where there is
/// one.
MapLoop map_loop(ExprOp op, DType type);
/// Converts `from` (a compute type) like Expr's Cast to `to`: the result has type compute_type(to).
MapLoop cast_loop(DType from, DType to, bool saturate);
/// From stored elements to the compute type; null when they are equal. Packed types have none.
MapLoop load_loop(DType stored);
/// From the compute type to stored elements, rounding as a store does; null when they are equal.
MapLoop store_loop(DType stored);

class ExprProgram {
public:
    /// `uniform`: the inputs whose block repeats one element; empty for none. `block_limit`: the
    /// maximum number of elements per run.
    explicit ExprProgram(const Expr& e, const std::vector<bool>& uniform = {},
                         int64_t block_limit = 1024);

    /// Elements per run; a power of two, chosen so that a run's registers stay in cache.
    int64_t block() const { return block_; }
    /// Bytes of 64-byte aligned memory that a run needs.
    int64_t work_bytes() const { return slots_ * slot_bytes_; }
    DType result_type() const { return result_; }
    int64_t instructions() const { return static_cast<int64_t>(steps_.size()); }

    /// Computes what depends on uniform inputs alone, for runs with this `work`: to be called when
    /// they get other values, with the largest n of these runs.
    void run_uniform(const void* const* in, int64_t n, std::byte* work) const;
    /// in[i] and out hold n <= block() elements of compute types. `out` may be one of the inputs.
    /// Thread safe with different `work`.
    void run(const void* const* in, void* out, int64_t n, std::byte* work) const;

private:
    enum class Source : uint8_t { Input, Slot, Constant, Table };
    struct Operand {
        Source source = Source::Slot;
        int index = 0;
    };
    struct Instruction {
        MapLoop loop = nullptr;
        Operand args[3];
        int target = -1; // slot, or -1 for the result
    };
    void choose_block(int64_t limit, int64_t widest);
    void run_list(const std::vector<Instruction>& list, const void* const* in, void* out, int64_t n,
                  std::byte* work) const;
    const void* address(const Operand& o, const void* const* in, const std::byte* work) const;

    std::vector<Instruction> once_; // their slots have no other use
    std::vector<Instruction> steps_;
    std::vector<std::byte> constants_; // blocks of one repeated value
    std::vector<std::array<std::byte, 256>> tables_;
    int64_t slots_ = 0;
    int64_t slot_bytes_ = 0;
    int64_t block_ = 0;
    DType result_ = DType::F32;
    int64_t result_width_ = 4;
};

} // namespace ingot::cpu
