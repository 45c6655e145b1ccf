// SPDX-License-Identifier: Apache-2.0
// Rules: each examines one node, or a whole graph, and rewrites the pattern it recognises. They run
// until none changes anything. Every rule reduces the number of nodes, operands or bytes, so this
// terminates.
#pragma once

#include "ir/tensor.h"
#include "slim/analysis.h"
#include "slim/edit.h"
#include "slim/onnx_node.h"
#include "slim/slim.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot::slim {

/// The view of a rule: the graph it may change, and the analysis of its tensors. The analysis
/// describes the model at the beginning of the round; newer tensors have no entry.
struct Context {
    GraphEdit& edit;
    const Analysis& analysis;
    const onnx::Model& model; // opsets and functions; its graphs are being edited
    const SlimOptions& options;
    int64_t opset = 0; // of the default domain

    const TensorInfo* info(const std::string& name) const {
        return analysis.find(edit.graph(), name);
    }
    /// The type by analysis, or of a constant.
    std::optional<Type> type(const std::string& name) const;
    std::optional<DType> dtype(const std::string& name) const;
    std::optional<int64_t> rank(const std::string& name) const;
    std::optional<Shape> shape(const std::string& name) const; // when all sizes are constant
    /// Both types are known and equal, symbols included.
    bool same_type(const std::string& a, const std::string& b) const;
    /// The contents of a constant whose element type Ingot supports.
    std::optional<Tensor> constant(const std::string& name) const;
    std::optional<std::vector<int64_t>> constant_ints(const std::string& name) const;
    /// Integers that an operator takes as an attribute in old opsets and as an operand in new ones:
    /// `given` is false when absent, `known` is empty when they are computed at run time.
    struct Parameter {
        bool given = false;
        std::optional<std::vector<int64_t>> known;
    };
    Parameter parameter(const onnx::Node& n, std::string_view attribute, size_t operand) const;
    /// The node of this type in the default domain that computes a tensor.
    std::optional<size_t> producer(const std::string& name, std::string_view op) const;
    /// The same if the tensor has no other reader: it can be fused away.
    std::optional<size_t> only_producer(const std::string& name, std::string_view op) const;
    /// Adds an initializer with these contents; returns its name.
    std::string add(const Tensor& t, const std::string& stem);
    std::string add_ints(const std::vector<int64_t>& v, const std::string& stem);
    /// The value shared by all elements of a tensor, when known.
    std::optional<double> filled_with(const std::string& name) const;
};

onnx::Tensor to_onnx(const Tensor& t);

struct Rule {
    std::string_view name;
    std::string_view group;
    std::string_view what;
    /// Operators that a node rule is tried on. Empty for graph rules.
    std::vector<std::string_view> ops;
    /// Returns whether it changed anything. Graph rules get 0 for the node.
    bool (*apply)(Context& c, size_t node) = nullptr;
    /// Results are equal bit for bit (except the sign of zeros); otherwise within rounding.
    bool exact = true;
};

// One table per file of src/slim; all_rules() lists them in execution order.
using RuleTable = std::span<const Rule>;
extern const RuleTable constant_rules, equality_rules, dead_code_rules, view_rules, piece_rules,
    shape_rules, identity_rules, pointwise_rules, reduce_rules, conv_rules, gemm_rules,
    batched_gemm_rules, norm_rules, control_rules;
std::vector<const Rule*> all_rules();

} // namespace ingot::slim
