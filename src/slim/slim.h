// SPDX-License-Identifier: Apache-2.0
// slim: simplifies an ONNX model and keeps it ONNX. What tensors are is learnt by importing the
// model (slim/facts.h); the model itself is rewritten by small rules (slim/rules.h) until none of
// them applies any more.
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
    /// Rules, or groups of rules, that are left out: names of slim_rules().
    std::vector<std::string> skip;
    /// By how many bytes a folded constant may be larger than the constants it replaces.
    uint64_t size_threshold = uint64_t{64} << 20U;
    /// Initializers that are graph inputs too stay inputs, and their values are not relied upon.
    bool keep_initializer_inputs = false;
};

struct SlimReport {
    int rounds = 0;
    std::map<std::string, int64_t> applied; // how often each rule changed something
};

/// The simplified model: same inputs (but for frozen initializers), same outputs, same opset.
/// Weights that did not change still lie where `model` has them. The result depends on model and
/// options alone, and slimming it again changes nothing. Of models below opset 7 only what is dead
/// or there twice goes. Errors: InvalidModel; InvalidArgument for an unknown input or rule.
onnx::Model slim_model(const onnx::Model& model, const SlimOptions& options = {},
                       SlimReport* report = nullptr);

struct SlimRuleInfo {
    std::string_view name;
    std::string_view group;
    std::string_view what;
    bool exact; // results stay equal bit for bit; else within rounding
};
std::vector<SlimRuleInfo> slim_rules();

/// How often each operator occurs, bodies of control flow and functions included.
using OpCounts = std::map<std::string, int64_t>;
OpCounts count_operators(const onnx::Model& model);

} // namespace ingot
