// SPDX-License-Identifier: Apache-2.0
#include "onnx/graph_walk.h"

#include "base/error.h"
#include "base/interrupt.h"

namespace ingot::onnx {

bool is_default_domain(std::string_view domain) {
    return domain.empty() || domain == "ai.onnx";
}

int64_t opset_of(const OpsetImports& opsets, const std::string& domain) {
    auto it = opsets.find(domain);
    if (it == opsets.end() && is_default_domain(domain)) {
        it = opsets.find(domain.empty() ? "ai.onnx" : "");
    }
    return it == opsets.end() ? 0 : it->second;
}

std::string describe(const Node& node, size_t index, int64_t opset) {
    std::string name = node.name.empty() ? str("#", index) : str("'", node.name, "'");
    return str("node ", name, " (", node.domain.empty() ? "" : node.domain + ".", node.op_type,
               ", opset ", opset, ")");
}

int64_t GraphWalk::opset(const Node& node) const {
    return opset_of(opsets_, node.domain);
}

const FunctionProto* GraphWalk::function(const Node& node) const {
    if (model_.functions.empty()) {
        return nullptr;
    }
    auto it = model_.functions.find({node.domain, node.op_type, node.overload});
    return it == model_.functions.end() ? nullptr : &it->second;
}

bool GraphWalk::knows(const Node& node) const {
    return function(node) != nullptr ||
           find_importer(node.domain, node.op_type, opset(node)) != nullptr;
}

void GraphWalk::take_initializers(const Graph& source) {
    auto refuse = [this](const std::string& name, const Error& e) {
        refused_initializer(name, e);
        poisoned_.insert(name);
    };
    for (const Tensor& t : source.initializers) {
        try {
            add_initializer(t);
        } catch (const Error& e) {
            refuse(t.name, e);
        }
    }
    for (const SparseTensor& t : source.sparse_initializers) {
        refuse(t.values.name,
               Error(ErrorCode::Unsupported,
                     "sparse initializers are not supported; store the tensor densely",
                     RefusalKind::DataType));
    }
}

void GraphWalk::take_inputs(const Graph& source) {
    std::unordered_set<std::string_view> fixed;
    for (const Tensor& t : source.initializers) {
        fixed.insert(t.name);
    }
    for (const SparseTensor& t : source.sparse_initializers) {
        fixed.insert(t.values.name);
    }
    for (const ValueInfo& info : source.inputs) {
        if (fixed.contains(info.name)) {
            continue;
        }
        try {
            add_input(info);
        } catch (const Error& e) {
            refused_input(info.name, e);
            poisoned_.insert(info.name);
        }
    }
}

void GraphWalk::take_nodes(const std::vector<Node>& nodes) {
    for (size_t index : node_order(nodes)) {
        check_interrupt();
        take_node(nodes[index], index);
    }
}

void GraphWalk::take_outputs(const Graph& source) {
    for (const ValueInfo& info : source.outputs) {
        switch (find(info.name)) {
        case Lookup::Found:
            add_output(info);
            break;
        case Lookup::Poisoned:
            break;
        case Lookup::Missing:
            missing_output(str("output '", info.name, "' is computed by no node"));
            break;
        }
    }
}

void GraphWalk::take_node(const Node& node, size_t index) {
    bool poisoned = false;
    for (const std::string& name : read_by(node)) {
        Lookup found = name.empty() ? Lookup::Found : find(name);
        if (found == Lookup::Missing) {
            poison(node.outputs);
            missing_input(node, index,
                          str("input '", name,
                              "' is neither an input, an initializer nor the output of a node"));
            return;
        }
        poisoned = poisoned || found == Lookup::Poisoned;
    }
    check_node(node, index);
    if (!knows(node)) {
        refuse_node(node, index, unknown(node));
        return;
    }
    if (poisoned) { // what it reads was refused: only that is reported
        poison(node.outputs);
        return;
    }
    try {
        add_node(node, index);
    } catch (const Error& e) {
        if (!is_refusal(e)) {
            throw;
        }
        refuse_node(node, index, e);
    }
}

void GraphWalk::refuse_node(const Node& node, size_t index, const Error& e) {
    poison(node.outputs);
    refused_node(node, index, e);
}

Error GraphWalk::unknown(const Node& node) const {
    int64_t version = opset(node);
    std::string reason =
        version == 0 ? str("the model imports no opset of domain '", node.domain, "'")
        : is_default_domain(node.domain)
            ? str("there is no such operator at opset ", version, ", or Ingot does not know it")
        : node.domain == "ai.onnx.ml"
            ? std::string("Ingot does not know this operator: tree ensembles, scalers and all "
                          "others of ai.onnx.ml (classical machine learning) are not covered; "
                          "convert the model to tensor operators before (Hummingbird does so), or "
                          "run it in ONNX Runtime")
            : std::string("Ingot does not know this operator, and the model does not define it");
    return {ErrorCode::Unsupported, std::move(reason), RefusalKind::Operator};
}

std::vector<size_t> node_order(const std::vector<Node>& nodes) {
    std::unordered_map<std::string_view, size_t> producer;
    producer.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const std::string& o : nodes[i].outputs) {
            if (!o.empty()) {
                producer.emplace(o, i);
            }
        }
    }
    std::vector<size_t> order;
    order.reserve(nodes.size());
    std::vector<uint8_t> state(nodes.size(), 0);  // 0 new, 1 on the stack, 2 done
    std::vector<std::pair<size_t, size_t>> stack; // node, next input
    for (size_t root = 0; root < nodes.size(); ++root) {
        if (state[root] == 0) {
            stack.emplace_back(root, 0);
            state[root] = 1;
        }
        while (!stack.empty()) {
            auto& [n, next] = stack.back();
            if (next == nodes[n].inputs.size()) {
                state[n] = 2;
                order.push_back(n);
                stack.pop_back();
                continue;
            }
            auto it = producer.find(nodes[n].inputs[next++]);
            if (it == producer.end() || state[it->second] == 2) {
                continue;
            }
            if (state[it->second] == 1) {
                std::string cycle;
                size_t i = stack.size();
                do {
                    --i;
                    const Node& member = nodes[stack[i].first];
                    append(cycle, str(cycle.empty() ? "" : " <- ", member.op_type, " '",
                                      member.name.empty() ? member.outputs[0] : member.name, "'"));
                } while (stack[i].first != it->second);
                fail(ErrorCode::InvalidModel, "the graph has a cycle: ", cycle);
            }
            state[it->second] = 1;
            stack.emplace_back(it->second, 0);
        }
    }
    return order;
}

} // namespace ingot::onnx
