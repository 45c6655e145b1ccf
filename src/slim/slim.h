// SPDX-License-Identifier: Apache-2.0
// slim: simplifies an ONNX model and keeps it ONNX. Importing the model gives the types and
// contents of its tensors; small rules (slim/rules.h) rewrite it until none applies.
#pragma once

#include "ir/dim.h"
#include "onnx/model.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

struct SlimOptions {
    /// Replaces the sizes of these graph inputs.
    std::vector<std::pair<std::string, Shape>> input_shapes;
    /// Rules, or groups of rules, to skip: names of slim_rules().
    std::vector<std::string> skip;
    /// Maximum growth in bytes of a folded constant over the constants it replaces.
    uint64_t size_threshold = uint64_t{64} << 20U;
    /// Cuts off operators that only make labels of strings (onnx/string_ends.h).
    bool cut_strings = false;
    /// Keeps initializers that are also graph inputs as inputs, and does not rely on their values.
    bool keep_initializer_inputs = false;
};

struct SlimReport {
    int rounds = 0;
    std::map<std::string, int64_t> applied; // number of changes by each rule
};

/// The simplified model: same inputs (except frozen initializers), same outputs, same opset.
/// Unchanged weights share memory with `model`. The result depends only on model and options;
/// slimming it again changes nothing. Below opset 7, only dead and duplicate parts are removed.
/// Errors: InvalidModel; InvalidArgument for an unknown input or rule; Unsupported for
/// strings that cannot be cut off.
onnx::Model slim_model(const onnx::Model& model, const SlimOptions& options = {},
                       SlimReport* report = nullptr);

struct SlimRuleInfo {
    std::string_view name;
    std::string_view group;
    std::string_view what;
    bool exact; // results stay equal bit for bit; otherwise within rounding
};
std::vector<SlimRuleInfo> slim_rules();

/// The number of nodes per operator, including bodies of control flow and functions.
using OpCounts = std::map<std::string, int64_t>;
OpCounts count_operators(const onnx::Model& model);

} // namespace ingot
