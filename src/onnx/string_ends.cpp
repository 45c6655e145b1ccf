// SPDX-License-Identifier: Apache-2.0
#include "onnx/string_ends.h"

#include "base/error.h"
#include "base/text.h"
#include "onnx/import_node.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace ingot::onnx {

namespace {

constexpr int string_type = 8; // TensorProto.DataType

using Names = std::set<std::string, std::less<>>;

const Attribute* find(const Node& n, std::string_view name) {
    auto it = std::find_if(n.attributes.begin(), n.attributes.end(),
                           [&](const Attribute& a) { return a.name == name; });
    return it == n.attributes.end() ? nullptr : &*it;
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

std::string called(const Node& n) {
    return str("'", n.name.empty() ? n.op_type : n.name, "'");
}

/// Whether its attributes hold strings that it returns.
bool makes_strings(const Node& n) {
    if (n.op_type == "Constant") {
        const Attribute* value = find(n, "value");
        return find(n, "value_string") != nullptr || find(n, "value_strings") != nullptr ||
               (value != nullptr && value->t.data_type == string_type);
    }
    if (n.op_type == "Cast") {
        const Attribute* to = find(n, "to");
        return to != nullptr && to->i == string_type;
    }
    if (n.op_type == "LabelEncoder") {
        const Attribute* values = find(n, "values_tensor");
        return find(n, "values_strings") != nullptr || find(n, "classes_strings") != nullptr ||
               (values != nullptr && values->t.data_type == string_type);
    }
    return n.op_type == "ZipMap"; // labels, as keys of maps
}

/// Whether its result holds numbers although it reads strings.
bool makes_numbers_of_strings(const Node& n) {
    if (n.op_type == "Cast" || n.op_type == "LabelEncoder") {
        return !makes_strings(n);
    }
    return is_any(n.op_type, {"Equal", "Shape", "Size", "CategoryMapper", "RegexFullMatch",
                              "TfIdfVectorizer", "OneHotEncoder"});
}

bool any_strings(const Graph& g) {
    auto typed = [](const ValueInfo& v) { return v.elem_type == string_type; };
    return std::any_of(g.initializers.begin(), g.initializers.end(),
                       [](const Tensor& t) { return t.data_type == string_type; }) ||
           std::any_of(g.inputs.begin(), g.inputs.end(), typed) ||
           std::any_of(g.outputs.begin(), g.outputs.end(), typed) ||
           std::any_of(g.nodes.begin(), g.nodes.end(), makes_strings);
}

bool body_has_strings(const Node& n) {
    auto has = [](const Graph& g) {
        return any_strings(g) || std::any_of(g.nodes.begin(), g.nodes.end(), body_has_strings);
    };
    return std::any_of(n.attributes.begin(), n.attributes.end(), [&](const Attribute& a) {
        return (a.g != nullptr && has(*a.g)) || std::any_of(a.graphs.begin(), a.graphs.end(),
                                                            [&](const auto& g) { return has(*g); });
    });
}

class Ends {
public:
    explicit Ends(const Model& model) : g_(model.graph) {
        for (const Tensor& t : g_.initializers) {
            constants_.insert(t.name);
            if (t.data_type == string_type) {
                strings_.insert(t.name);
            }
        }
        for (const auto* list : {&g_.inputs, &g_.outputs, &g_.value_info}) {
            for (const ValueInfo& v : *list) {
                if (v.elem_type == string_type) {
                    strings_.insert(v.name);
                }
            }
        }
        for (size_t i = 0; i < g_.nodes.size(); ++i) {
            look(i);
        }
        find_obstacle();
        find_outputs();
    }

    StringEnds found() const {
        StringEnds out;
        out.obstacle = obstacle_;
        if (obstacle_.empty()) {
            for (size_t i : nodes_) {
                out.nodes.push_back(called(g_.nodes[i]));
            }
            out.outputs = outputs_;
            out.instead = instead_;
        }
        return out;
    }

    Graph cut() const {
        Graph out = g_;
        out.nodes.clear();
        for (size_t i = 0; i < g_.nodes.size(); ++i) {
            if (nodes_.count(i) == 0) {
                out.nodes.push_back(g_.nodes[i]);
            }
        }
        auto goes = [&](const auto& v) {
            return made_.contains(v.name) || strings_.contains(v.name);
        };
        std::erase_if(out.outputs, goes);
        std::erase_if(out.value_info, goes);
        std::erase_if(out.initializers, goes);
        for (const std::string& name : instead_) {
            auto known = std::find_if(g_.value_info.begin(), g_.value_info.end(),
                                      [&](const ValueInfo& v) { return v.name == name; });
            ValueInfo v;
            v.name = name;
            out.outputs.push_back(known == g_.value_info.end() ? v : *known);
            std::erase_if(out.value_info, [&](const ValueInfo& o) { return o.name == name; });
        }
        return out;
    }

private:
    void look(size_t i) {
        const Node& n = g_.nodes[i];
        auto is_string = [&](const std::string& name) { return strings_.contains(name); };
        bool reads = std::any_of(n.inputs.begin(), n.inputs.end(), is_string);
        bool makes = makes_strings(n) || std::any_of(n.outputs.begin(), n.outputs.end(), is_string);
        if (!reads && !makes) {
            return;
        }
        nodes_.insert(i);
        made_.insert(n.outputs.begin(), n.outputs.end());
        for (size_t k = 0; k < n.outputs.size(); ++k) {
            // StringSplit's second result counts, and so do Unique's.
            if (makes || (!makes_numbers_of_strings(n) && k == 0)) {
                strings_.insert(n.outputs[k]);
            }
        }
    }

    void find_obstacle() {
        for (const ValueInfo& v : g_.inputs) {
            if (v.elem_type == string_type && !constants_.contains(v.name)) {
                obstacle_ = str("input '", v.name, "' is strings");
                return;
            }
        }
        for (size_t i = 0; i < g_.nodes.size(); ++i) {
            const Node& n = g_.nodes[i];
            if (body_has_strings(n)) {
                obstacle_ = str("a body of ", called(n), " has strings");
                return;
            }
            for (const std::string& name : nodes_.count(i) != 0 ? Strings() : read_names(n)) {
                if (made_.contains(name)) {
                    obstacle_ = str("node ", called(n), " computes with '", name,
                                    "', which is made of strings");
                    return;
                }
            }
        }
    }

    void find_outputs() {
        Names present;
        for (const ValueInfo& v : g_.outputs) {
            present.insert(v.name);
            if (made_.contains(v.name) || strings_.contains(v.name)) {
                outputs_.push_back(v.name);
            }
        }
        for (size_t i : nodes_) {
            for (const std::string& name : read_names(g_.nodes[i])) {
                bool computed = !name.empty() && !made_.contains(name) &&
                                !strings_.contains(name) && !constants_.contains(name);
                if (computed && present.insert(name).second) {
                    instead_.push_back(name);
                }
            }
        }
    }

    using Strings = std::vector<std::string>;

    const Graph& g_;
    Names strings_;
    Names constants_;
    Names made_; // results of `nodes_`
    std::set<size_t> nodes_;
    std::string obstacle_;
    Strings outputs_;
    Strings instead_;
};

std::string quoted(const std::vector<std::string>& names) {
    return names.empty() ? "nothing" : str("'", join(names, "', '"), "'");
}

} // namespace

std::string StringEnds::text() const {
    if (!obstacle.empty()) {
        return str("strings cannot be cut off: ", obstacle);
    }
    return str(nodes.size(), nodes.size() == 1 ? " string operator" : " string operators",
               " at the ends (", join(nodes, ", "),
               "): ", outputs.size() == 1 ? "output " : "outputs ", quoted(outputs),
               outputs.size() == 1 ? " becomes " : " become ",
               instead.empty() ? "what other outputs hold" : quoted(instead));
}

StringEnds string_ends(const Model& model) {
    return Ends(model).found();
}

Model without_string_ends(const Model& model) {
    Ends ends(model);
    StringEnds found = ends.found();
    require(found.obstacle.empty(), ErrorCode::Unsupported, found.text());
    if (found.nodes.empty()) {
        return model;
    }
    Model out = model;
    out.graph = ends.cut();
    return out;
}

std::string string_advice(const Model& model) {
    StringEnds ends = string_ends(model);
    if (!ends.obstacle.empty()) {
        return str("  ", ends.text());
    }
    return ends.nodes.empty()
               ? ""
               : str("  ingot slim --cut-strings MODEL -o OUT.onnx cuts ", ends.text());
}

} // namespace ingot::onnx
