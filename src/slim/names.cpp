// SPDX-License-Identifier: Apache-2.0
#include "slim/names.h"

#include "base/error.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

namespace ingot::slim {

using onnx::Attribute;
using onnx::Graph;
using onnx::Node;

namespace {

void each_defined(const Graph& g, const std::function<void(const std::string&)>& f) {
    for (const onnx::ValueInfo& v : g.inputs) {
        f(v.name);
    }
    for (const onnx::Tensor& t : g.initializers) {
        f(t.name);
    }
    for (const onnx::SparseTensor& t : g.sparse_initializers) {
        f(t.values.name);
    }
    for (const Node& n : g.nodes) {
        for (const std::string& o : n.outputs) {
            if (!o.empty()) {
                f(o);
            }
        }
    }
}

void each_graph(const Graph& g, const std::function<void(const Graph&)>& f) {
    f(g);
    for (const Node& n : g.nodes) {
        each_body(n, [&](const Graph& b) { each_graph(b, f); });
    }
}

std::unordered_set<std::string> defined_in(const Graph& g) {
    std::unordered_set<std::string> out;
    each_defined(g, [&](const std::string& name) { out.insert(name); });
    return out;
}

void collect_free(const Graph& g, std::vector<std::string>& out,
                  std::unordered_set<std::string>& seen) {
    const std::unordered_set<std::string> own = defined_in(g);
    auto use = [&](const std::string& name) {
        if (!name.empty() && !own.contains(name) && seen.insert(name).second) {
            out.push_back(name);
        }
    };
    for (const Node& n : g.nodes) {
        std::for_each(n.inputs.begin(), n.inputs.end(), use);
        each_body(n, [&](const Graph& b) {
            std::vector<std::string> inner;
            std::unordered_set<std::string> inner_seen;
            collect_free(b, inner, inner_seen);
            std::for_each(inner.begin(), inner.end(), use);
        });
    }
    for (const onnx::ValueInfo& v : g.outputs) {
        use(v.name);
    }
}

void rename_free(Graph& g, const std::string& from, const std::string& to) {
    if (!defined_in(g).contains(from)) {
        rename_uses(g, from, to);
    }
}

std::shared_ptr<Graph> copied(const Graph& g) {
    auto out = std::make_shared<Graph>(g);
    for (Node& n : out->nodes) {
        for (Attribute& a : n.attributes) {
            if (a.g != nullptr) {
                a.g = copied(*a.g);
            }
            for (std::shared_ptr<Graph>& b : a.graphs) {
                b = copied(*b);
            }
        }
    }
    return out;
}

// Renames one definition and its uses inside the graph that defines it.
void rename_definition(Graph& g, const std::string& from, const std::string& to) {
    rename_uses(g, from, to);
    auto rename = [&](std::string& name) { name = name == from ? to : name; };
    for (onnx::ValueInfo& v : g.inputs) {
        rename(v.name);
    }
    for (onnx::ValueInfo& v : g.value_info) {
        rename(v.name);
    }
    for (onnx::Tensor& t : g.initializers) {
        rename(t.name);
    }
    for (onnx::SparseTensor& t : g.sparse_initializers) {
        rename(t.values.name);
    }
    for (Node& n : g.nodes) {
        std::for_each(n.outputs.begin(), n.outputs.end(), rename);
    }
}

void make_body_unique(Graph& g, std::unordered_set<std::string>& taken, Names& names) {
    std::unordered_set<std::string> own; // an initializer may also be an input
    std::vector<std::string> clashing;
    each_defined(g, [&](const std::string& name) {
        if (own.insert(name).second && !taken.insert(name).second) {
            clashing.push_back(name);
        }
    });
    for (const std::string& name : clashing) {
        const std::string fresh = names.fresh(name);
        taken.insert(fresh);
        rename_definition(g, name, fresh);
    }
    for (Node& n : g.nodes) {
        each_body(n, [&](Graph& b) { make_body_unique(b, taken, names); });
    }
}

[[noreturn]] void refuse_cycle(const std::vector<Node>& nodes,
                               const std::vector<std::pair<size_t, size_t>>& stack, size_t last) {
    std::string cycle;
    for (size_t i = stack.size(); i-- > 0;) {
        const Node& n = nodes[stack[i].first];
        append(cycle, str(cycle.empty() ? "" : " <- ", n.op_type, " '", n.name, "'"));
        if (stack[i].first == last) {
            break;
        }
    }
    fail(ErrorCode::InvalidModel, "the graph has a cycle: ", cycle);
}

} // namespace

Names::Names(const onnx::Model& model) {
    each_graph(model.graph, [&](const Graph& g) {
        each_defined(g, [&](const std::string& name) { all_.insert(name); });
    });
}

std::string Names::fresh(const std::string& stem) {
    std::string name = stem;
    for (int i = 1; name.empty() || !all_.insert(name).second; ++i) {
        name = str(stem, "_", i);
    }
    return name;
}

void each_body(Node& node, const std::function<void(Graph&)>& f) {
    for (Attribute& a : node.attributes) {
        if (a.g != nullptr) {
            f(*a.g);
        }
        for (const std::shared_ptr<Graph>& b : a.graphs) {
            f(*b);
        }
    }
}

void each_body(const Node& node, const std::function<void(const Graph&)>& f) {
    for (const Attribute& a : node.attributes) {
        if (a.g != nullptr) {
            f(*a.g);
        }
        for (const std::shared_ptr<Graph>& b : a.graphs) {
            f(*b);
        }
    }
}

bool has_body(const Node& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(),
                       [](const Attribute& a) { return a.g != nullptr || !a.graphs.empty(); });
}

std::vector<std::string> captures(const Node& node) {
    std::vector<std::string> out;
    std::unordered_set<std::string> seen;
    each_body(node, [&](const Graph& b) { collect_free(b, out, seen); });
    return out;
}

void rename_captures(Node& node, const std::string& from, const std::string& to) {
    each_body(node, [&](Graph& b) { rename_free(b, from, to); });
}

void rename_uses(Graph& graph, const std::string& from, const std::string& to) {
    for (Node& n : graph.nodes) {
        std::replace(n.inputs.begin(), n.inputs.end(), from, to);
        rename_captures(n, from, to);
    }
    for (onnx::ValueInfo& v : graph.outputs) {
        v.name = v.name == from ? to : v.name;
    }
}

onnx::Model deep_copy(const onnx::Model& model) {
    onnx::Model out = model;
    out.graph = *copied(model.graph);
    return out;
}

void make_names_unique(onnx::Model& model) {
    std::unordered_set<std::string> taken = defined_in(model.graph);
    Names names(model);
    for (Node& n : model.graph.nodes) {
        each_body(n, [&](Graph& b) { make_body_unique(b, taken, names); });
    }
}

void sort_nodes(std::vector<Node>& nodes) {
    std::unordered_map<std::string, size_t> producer;
    std::vector<std::vector<std::string>> needs;
    for (size_t i = 0; i < nodes.size(); ++i) {
        needs.push_back(nodes[i].inputs);
        const std::vector<std::string> captured = captures(nodes[i]);
        needs[i].insert(needs[i].end(), captured.begin(), captured.end());
        for (const std::string& o : nodes[i].outputs) {
            producer.emplace(o, i);
        }
    }
    producer.erase("");
    std::vector<Node> sorted;
    std::vector<uint8_t> state(nodes.size(), 0);  // 0 new, 1 on the stack, 2 done
    std::vector<std::pair<size_t, size_t>> stack; // node, index of its next operand to visit
    auto push = [&](size_t i) {
        stack.emplace_back(i, 0);
        state[i] = 1;
    };
    for (size_t root = 0; root < nodes.size(); ++root) {
        if (state[root] == 0) {
            push(root);
        }
        while (!stack.empty()) {
            const size_t i = stack.back().first;
            if (stack.back().second == needs[i].size()) {
                state[i] = 2;
                sorted.push_back(std::move(nodes[i]));
                stack.pop_back();
                continue;
            }
            auto it = producer.find(needs[i][stack.back().second++]);
            if (it == producer.end() || state[it->second] == 2) {
                continue;
            }
            if (state[it->second] == 1) {
                refuse_cycle(nodes, stack, it->second);
            }
            push(it->second);
        }
    }
    nodes = std::move(sorted);
}

} // namespace ingot::slim
