// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/claim.h"

#include "NvInferRuntimeBase.h"
#include "api/tensorrt/parser/parser.h"
#include "onnx/import_node.h"
#include "ops/ops.h"

#include <unordered_map>

namespace ingot::api {

namespace {

class Claim {
public:
    explicit Claim(const onnx::Model& model) : model_(model) {
        for (const onnx::ValueInfo& v : model.graph.value_info) {
            types_.emplace(v.name, &v);
        }
        for (const onnx::ValueInfo& v : model.graph.outputs) {
            types_.emplace(v.name, &v);
        }
    }

    void run(NodeVerdict verdict, void* user) {
        for (const onnx::Tensor& t : model_.graph.initializers) {
            define(t.name, [&] { return ops::constant(graph_, onnx::initializer(t)); });
        }
        for (const onnx::ValueInfo& v : model_.graph.inputs) {
            if (!values_.contains(v.name) && !unknown_.contains(v.name)) {
                define(v.name, [&] { return input(v); });
            }
        }
        for (size_t i : onnx::run_order(model_.graph)) {
            std::string reason = judge(model_.graph.nodes[i], i);
            verdict(static_cast<int64_t>(i), reason.empty() ? nullptr : reason.c_str(), user);
        }
    }

private:
    template <class F>
    void define(const std::string& name, const F& f) {
        try {
            values_[name] = f();
        } catch (const Error& e) {
            values_.erase(name);
            unknown_[name] = e.message();
        }
    }

    Value input(const onnx::ValueInfo& v) {
        Type type = onnx::graph_input_type(v);
        check_rank(type);
        return graph_.add_input(str(v.name, "#", count_++), std::move(type));
    }

    static void check_rank(const Type& t) {
        require(t.rank() <= nvinfer1::Dims::MAX_DIMS, ErrorCode::Unsupported, "it has rank ",
                t.rank(), ", expected at most ", nvinfer1::Dims::MAX_DIMS);
    }

    std::string judge(const onnx::Node& n, size_t index) {
        try {
            std::unordered_map<std::string, Value> names;
            for (const std::string& name : onnx::read_names(n)) {
                if (name.empty()) {
                    continue;
                }
                auto it = unknown_.find(name);
                require(it == unknown_.end(), ErrorCode::Unsupported, "input '", name,
                        "': ", it == unknown_.end() ? std::string() : it->second);
                auto value = values_.find(name);
                require(value != values_.end(), ErrorCode::InvalidModel, "input '", name,
                        "' is neither an input, an initializer nor the output of a node");
                names.insert(*value);
            }
            Values made = onnx::import_node(model_, graph_, n, index, std::move(names));
            for (size_t i = 0; i < n.outputs.size(); ++i) {
                if (!n.outputs[i].empty()) {
                    check_rank(graph_.type(made.at(i)));
                    values_[n.outputs[i]] = made[i];
                }
            }
            return {};
        } catch (const Error& e) {
            assume_results(n);
            return e.message().empty() ? "it is not supported" : e.message();
        }
    }

    void assume_results(const onnx::Node& n) {
        for (const std::string& name : n.outputs) {
            auto it = types_.find(name);
            if (it != types_.end()) {
                define(name, [&] { return input(*it->second); });
            } else if (!name.empty()) {
                unknown_[name] = "its type is not known, since the node that computes it is not "
                                 "supported";
            }
        }
    }

    const onnx::Model& model_;
    ingot::Graph graph_;
    std::unordered_map<std::string, Value> values_;
    std::unordered_map<std::string, std::string> unknown_; // value -> reason
    std::unordered_map<std::string, const onnx::ValueInfo*> types_;
    size_t count_ = 0;
};

} // namespace

void claim_nodes(const onnx::Model& model, NodeVerdict verdict, void* user) {
    Claim(model).run(verdict, user);
}

} // namespace ingot::api

extern "C" bool ingotClaimNodes(nvonnxparser::IParser* parser, ingot::NodeVerdict verdict,
                                void* user) noexcept {
    return parser != nullptr && static_cast<ingot::api::Parser*>(parser)->claim(verdict, user);
}
