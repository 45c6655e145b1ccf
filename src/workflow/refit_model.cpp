// SPDX-License-Identifier: Apache-2.0
// Reads an engine's weights from an ONNX model. Separate from refit.cpp, which libraries without an
// importer also contain.
#include "base/error.h"
#include "onnx/import_node.h"
#include "workflow/refit.h"

#include <algorithm>

namespace ingot {

namespace {

class ModelWeights {
public:
    explicit ModelWeights(const Engine& engine)
        : engine_(engine), source_(*engine.source()), defaults_(default_weights(engine)) {}

    void visit(const onnx::Model& model) {
        take_defaults(model.graph);
        visit(model.graph);
        for (const auto& [key, function] : model.functions) {
            visit(function.nodes);
        }
    }
    NamedTensors finish() {
        std::vector<std::string> missing;
        for (const Weight& w : replaceable_weights(engine_)) {
            if (!found_.contains(w.name)) {
                missing.push_back(w.name);
            }
        }
        require(missing.empty(), ErrorCode::InvalidArgument, "the model has no weights ",
                listed_weights(missing), "; it is not the one that the engine was built from");
        return std::move(found_);
    }

private:
    void take_defaults(const onnx::Graph& g) {
        for (const onnx::Tensor& t : g.initializers) {
            for (const Weight& w : defaults_) {
                if (t.name == w.name) {
                    Tensor value = onnx::initializer(t);
                    check_weight(w, value);
                    found_.insert_or_assign(w.name, std::move(value));
                }
            }
        }
    }
    void visit(const onnx::Graph& g) {
        for (const onnx::Tensor& t : g.initializers) {
            if (wanted(t.name)) {
                take(t.name, onnx::initializer(t));
            }
        }
        visit(g.nodes);
    }
    void visit(const std::vector<onnx::Node>& nodes) {
        for (const onnx::Node& n : nodes) {
            for (const onnx::Attribute& a : n.attributes) {
                if (n.op_type == "Constant" && n.outputs.size() == 1 && wanted(n.outputs[0])) {
                    take_constant(n.outputs[0], a);
                }
                if (a.g != nullptr) {
                    visit(*a.g);
                }
                for (const auto& body : a.graphs) {
                    visit(*body);
                }
            }
        }
    }
    bool wanted(const std::string& name) const {
        auto fixed = source_.fixed.find(name);
        return source_.find(name) != nullptr ||
               (fixed != source_.fixed.end() && !fixed->second.empty());
    }
    void take_constant(const std::string& name, const onnx::Attribute& a) {
        if (a.name == "value") {
            take(name, onnx::initializer(a.t));
        } else if (a.name == "value_float") {
            take(name, Tensor::scalar(DType::F32, static_cast<double>(a.f)));
        } else if (a.name == "value_int") {
            take(name, Tensor::scalar_i64(DType::I64, a.i));
        } else if (a.name == "value_ints") {
            take(name, Tensor::i64(a.ints));
        } else if (a.name == "value_floats") {
            take(name,
                 Tensor::of<float>(DType::F32, {static_cast<int64_t>(a.floats.size())}, a.floats));
        }
    }
    void take(const std::string& name, Tensor value) {
        const Weight* w = source_.find(name);
        auto fixed = source_.fixed.find(name);
        if (w == nullptr) {
            require(weight_hash(value) == fixed->second, ErrorCode::InvalidArgument, "constant '",
                    name,
                    "' of the model differs from that of the build, but cannot be refitted; "
                    "build the engine anew");
            return;
        }
        check_weight(*w, value);
        found_.insert_or_assign(name, std::move(value));
    }

    const Engine& engine_;
    const RefitSource& source_;
    std::vector<Weight> defaults_;
    NamedTensors found_;
};

} // namespace

NamedTensors weights_of_model(const Engine& engine, const onnx::Model& model) {
    ModelWeights weights(engine);
    weights.visit(model);
    return weights.finish();
}

} // namespace ingot
