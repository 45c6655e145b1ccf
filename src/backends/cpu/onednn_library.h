// SPDX-License-Identifier: Apache-2.0
// oneDNN through libingot_cpu.so: finds it, and makes steps that run its primitives.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/interface.h"

namespace ingot::cpu {

/// The library beside this program, opened at the first call. Null when it is missing or unusable;
/// logged once.
const onednn::Library* onednn_library();
/// Opens the library at `path`. Null on failure, with the reason in `problem`.
const onednn::Library* open_onednn(const std::string& path, std::string& problem);

onednn::Threads threads_of(ThreadPool& pool);
onednn::Element element_of(DType t); // for f32, f16, bf16, i32, i8, u8
/// A dense array whose axes have the memory order `order`.
onednn::Array dense_array(DType t, const Shape& shape, const Order& order);
onednn::Array strided_array(DType t, const Shape& shape, const Shape& strides);

/// A problem, and the operands of its parts.
struct LibraryProblem {
    onednn::Problem problem = {};
    Operand x;
    Operand w;
    Operand bias;
    Operand out;
    std::vector<Operand> posts;            // parallel to problem.posts
    const std::byte* w_constant = nullptr; // the base of w's buffer, when w is constant
    /// w has a negative stride, which oneDNN does not support: problem.w is a row-major copy.
    bool w_copied = false;
};

/// Whether oneDNN multiplies these types exactly: f32, or bytes by i8 on CPUs whose instructions
/// add products of bytes exactly (VNNI). Without these, oneDNN saturates sums of two.
bool library_multiplies(DType x, DType w);

/// Null when the library is missing, disabled, or has no optimised loops for the problem.
std::unique_ptr<Step> make_library_step(const LibraryProblem& problem, const StepArgs& args);

} // namespace ingot::cpu
