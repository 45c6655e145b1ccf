// SPDX-License-Identifier: Apache-2.0
// Constant operands of products, also behind a Transpose: exporters write the weight of a language
// model's last product so, since its embedding has the same one.
#pragma once

#include "slim/rules.h"

namespace ingot {

struct ConstantOperand {
    std::string name;        // of the constant
    bool transposed = false; // the product reads it with its two axes exchanged
};
/// The constant that a tensor is, or whose transpose it is; nullopt for others.
std::optional<ConstantOperand> constant_operand(const slim::Context& c, const std::string& tensor);

/// The constant as the product reads it.
Tensor value_of(const slim::Context& c, const ConstantOperand& o);

/// Erases the Transpose that computes a tensor, if nothing reads it any more.
void drop_transpose(slim::GraphEdit& edit, const std::string& tensor);

} // namespace ingot
