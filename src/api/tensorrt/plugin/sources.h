// SPDX-License-Identifier: Apache-2.0
// Source kernels: the public struct in Ingot's form, and the kernels registered for ONNX operators.
#pragma once

#include "ingot.h"
#include "ops/plugin.h"

#include <optional>
#include <string>

namespace ingot::api {

/// Errors: InvalidArgument for a missing text.
SourceKernel source_kernel(const CudaSource& source);
/// The kernel registered for an ONNX operator. Thread safe.
std::optional<SourceKernel> find_source(const std::string& domain, const std::string& op);

} // namespace ingot::api
