// SPDX-License-Identifier: Apache-2.0
// Kernels given as text: the public struct as Ingot's own, and those that stand for ONNX operators.
#pragma once

#include "ingot.h"
#include "ops/plugin.h"

#include <optional>
#include <string>

namespace ingot::api {

/// Errors: InvalidArgument for a text that has to be there.
SourceKernel source_kernel(const CudaSource& source);
/// The kernel registered for an ONNX operator. Thread safe.
std::optional<SourceKernel> find_source(const std::string& domain, const std::string& op);

} // namespace ingot::api
