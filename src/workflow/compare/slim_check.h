// SPDX-License-Identifier: Apache-2.0
// Runs a model and its slimmed form on the same inputs and compares the results.
#pragma once

#include "onnx/model.h"
#include "workflow/compare/compare.h"

namespace ingot {

struct SlimCheck {
    std::vector<std::string> random_inputs;
    std::vector<TensorDifference> outputs;
    bool ok() const;
};
/// Runs both without any pass on the backend. Errors: Unsupported when Ingot cannot run the model.
SlimCheck check_slimmed(const onnx::Model& original, const onnx::Model& slimmed,
                        const Backend& backend, const CompareOptions& options);

} // namespace ingot
