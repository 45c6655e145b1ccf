// SPDX-License-Identifier: Apache-2.0
// Functions of one value, recognised by their values: oneDNN's functions, stores of bytes, zero
// points.
#pragma once

#include "backends/cpu/post_ops.h"

namespace ingot::cpu {

PostStep step(onednn::Function f, double alpha = 0, double beta = 0);
/// The function of oneDNN that `e`, an expression of one f32, is; nullopt when it is none.
std::optional<PostStep> recognise(const Expr& e);
/// The steps before a store of bytes if `e`, from one f32 to bytes, ends in one: x + z, or with an
/// odd z, which moves halves to other bytes, round(x) + z.
std::optional<std::vector<PostStep>> steps_before_store(const Expr& e);
/// z if `e`, from one element of type `byte` to f32, is the element's number less z.
std::optional<double> zero_point(const Expr& e, DType byte);

} // namespace ingot::cpu
