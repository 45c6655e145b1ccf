// SPDX-License-Identifier: Apache-2.0
// The types of a node's results.
#pragma once

#include "ir/op.h"

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ingot {

/// Types of composites, by op, attributes and types of the operands.
using InferredTypes = std::unordered_map<std::string, std::vector<Type>>;

/// A composite's are those of its expansion, which `known` keeps. Errors: what infer or expand
/// throw; InvalidModel for a constant size in bytes that overflows.
std::vector<Type> infer_types(const OpDef& def, const void* attrs, std::span<const Type> in,
                              InferredTypes& known);

/// Constant sizes; symbolic ones are checked when they get values. Errors: InvalidModel, naming
/// `what`, for a size in bytes that overflows.
void check_size(std::string_view what, const Type& t);

} // namespace ingot
