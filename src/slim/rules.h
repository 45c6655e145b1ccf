// SPDX-License-Identifier: Apache-2.0
// Rules: each looks at one node, or at a whole graph, and rewrites what it recognises. They run
// until none of them changes anything. Every rule lowers the number of nodes, of operands or of
// bytes, so that this ends.
#pragma once

#include "ir/tensor.h"
#include "slim/edit.h"
#include "slim/facts.h"
#include "slim/node.h"
#include "slim/slim.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot::slim {

/// What a rule sees: the graph it may change, and what is known about its tensors. Facts are of the
/// model as it was when the round began; tensors that are newer have none.
struct Context {
    GraphEdit& edit;
    const Facts& facts;
    const onnx::Model& model; // opsets and functions; its graphs are being edited
    const SlimOptions& options;
    int64_t opset = 0; // of the default domain

    const Fact* fact(const std::string& name) const { return facts.find(edit.graph(), name); }
    /// Type by facts, or of a constant.
    std::optional<Type> type(const std::string& name) const;
    std::optional<DType> dtype(const std::string& name) const;
    std::optional<int64_t> rank(const std::string& name) const;
    std::optional<Shape> shape(const std::string& name) const; // where all sizes are numbers
    /// Both types are known and equal, symbols included.
    bool same_type(const std::string& a, const std::string& b) const;
    /// The contents of a constant whose element type Ingot has.
    std::optional<Tensor> constant(const std::string& name) const;
    std::optional<std::vector<int64_t>> constant_ints(const std::string& name) const;
    /// Integers that an operator takes as an attribute in old opsets and as an operand in new ones:
    /// `given` is false where there are none, `known` is empty where only the run knows them.
    struct Parameter {
        bool given = false;
        std::optional<std::vector<int64_t>> known;
    };
    Parameter parameter(const onnx::Node& n, std::string_view attribute, size_t operand) const;
    /// The node of this type in the default domain that computes a tensor.
    std::optional<size_t> producer(const std::string& name, std::string_view op) const;
    /// The same where nothing else reads the tensor: it can be fused away.
    std::optional<size_t> only_producer(const std::string& name, std::string_view op) const;
    /// Adds an initializer of that content; returns its name.
    std::string add(const Tensor& t, const std::string& stem);
    std::string add_ints(const std::vector<int64_t>& v, const std::string& stem);
    /// The value that all elements of a tensor have, where that is known.
    std::optional<double> filled_with(const std::string& name) const;
};

onnx::Tensor to_onnx(const Tensor& t);

struct Rule {
    std::string_view name;
    std::string_view group;
    std::string_view what;
    /// Node rules: the operators they are tried on. Empty for rules that see the graph as a whole.
    std::vector<std::string_view> ops;
    /// Did it change anything? Graph rules get 0 for the node.
    bool (*apply)(Context& c, size_t node) = nullptr;
    /// Are results equal bit for bit (but for the sign of zeros), or only within rounding?
    bool exact = true;
};

// One table a file of src/slim; all_rules() lists them in the order in which they run.
using RuleTable = std::span<const Rule>;
extern const RuleTable constant_rules, equality_rules, dead_code_rules, view_rules, piece_rules,
    shape_rules, identity_rules, pointwise_rules, reduce_rules, conv_rules, gemm_rules,
    batched_gemm_rules, norm_rules, control_rules;
std::vector<const Rule*> all_rules();

} // namespace ingot::slim
