// SPDX-License-Identifier: Apache-2.0
// oneDNN through libingot_cpu.so: finding it, and steps that run one of its primitives.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/library.h"

namespace ingot::cpu {

/// The library beside this program, opened at the first call. Null when it is missing or cannot be
/// used; the log says so once.
const onednn::Library* onednn_library();
/// Opens the library at `path`. Null on failure, with the reason in `problem`.
const onednn::Library* open_onednn(const std::string& path, std::string& problem);

onednn::Threads threads_of(ThreadPool& pool);
onednn::Element element_of(DType t); // for f32, f16, bf16, i32, i8, u8
/// A dense array whose axes lie in memory as `order` says.
onednn::Array dense_array(DType t, const Shape& shape, const Order& order);
onednn::Array strided_array(DType t, const Shape& shape, const Shape& strides);

/// A problem, and the operands that its parts stand for.
struct LibraryProblem {
    onednn::Problem problem = {};
    Operand x;
    Operand w;
    Operand bias;
    Operand out;
    std::vector<Operand> posts;            // parallel to problem.posts
    const std::byte* w_constant = nullptr; // the base of w's buffer, when w is constant
    /// w runs backwards along an axis, which oneDNN cannot: problem.w is a row-major copy of it.
    bool w_copied = false;
};

/// Null when the library is missing, not wanted, or has no optimised loops for the problem.
std::unique_ptr<Step> make_library_step(const LibraryProblem& problem, const StepArgs& args);

} // namespace ingot::cpu
