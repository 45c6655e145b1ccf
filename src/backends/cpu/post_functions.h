// SPDX-License-Identifier: Apache-2.0
// Functions of one value, recognised by their values: oneDNN's functions, stores of bytes, zero
// points.
#pragma once

#include "backends/cpu/post_ops.h"

namespace ingot::cpu {

PostStep step(onednn::Function f, double alpha = 0, double beta = 0);
/// The function of oneDNN that `e`, an expression of one f32, is; nullopt when it is none.
std::optional<PostStep> recognise(const Expr& e);
/// z if `e`, from one f32 to bytes, is a store of x + z for every x.
std::optional<double> shift_before_store(const Expr& e);
/// z if `e`, from one element of type `byte` to f32, is the element's number less z.
std::optional<double> zero_point(const Expr& e, DType byte);

} // namespace ingot::cpu
