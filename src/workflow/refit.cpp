// SPDX-License-Identifier: Apache-2.0
#include "workflow/refit.h"

#include "base/error.h"
#include "onnx/import_node.h"

#include <algorithm>

namespace ingot {

PipelineOptions pipeline_options(DType precision, const std::vector<std::string>& disabled) {
    PipelineOptions options;
    options.disabled = disabled;
    if (precision != DType::F32) {
        options.pass.precision = precision;
    }
    return options;
}

namespace {

constexpr size_t most_listed = 5;

std::string listed(const std::vector<std::string>& names) {
    std::vector<std::string> first(
        names.begin(),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most_listed)));
    return str("'", join(first, "', '"), "'",
               names.size() > most_listed ? str(" and ", names.size() - most_listed, " more") : "");
}

void check_type(const Weight& w, const Tensor& t) {
    require(t.dtype() == w.dtype && t.shape() == w.shape, ErrorCode::InvalidArgument, "weights '",
            w.name, "' are ", t.type(), ", expected ", Type{w.dtype, to_dims(w.shape)});
}

// The inputs and outputs of an engine are those it was built with, whatever its weights are.
void check_faces(const Graph& now, const Graph& before) {
    for (size_t i = 0; i < before.outputs().size(); ++i) {
        const Type& a = before.type(before.outputs()[i]);
        const Type& b = now.type(now.outputs()[i]);
        require(a.dtype == b.dtype && a.rank() == b.rank(), ErrorCode::InvalidArgument, "output '",
                before.output_names()[i], "' would be ", b, " with these weights, it is ", a,
                "; build the engine anew");
        for (size_t d = 0; d < a.dims.size(); ++d) {
            bool other = a.dims[d].is_const() && b.dims[d].is_const() && !(a.dims[d] == b.dims[d]);
            require(!other, ErrorCode::InvalidArgument, "output '", before.output_names()[i],
                    "' would be ", b, " with these weights, it is ", a, "; build the engine anew");
        }
    }
}

} // namespace

std::vector<std::string> missing_weights(const RefitSource& source, const NamedTensors& given) {
    std::vector<std::string> out;
    for (const Weight& w : source.weights) {
        if (source.missing && !given.contains(w.name)) {
            out.push_back(w.name);
        }
    }
    return out;
}

std::shared_ptr<const Engine> refitted(const Engine& engine, const NamedTensors& weights,
                                       bool validate) {
    const RefitSource* from = engine.source().get();
    require(from != nullptr, ErrorCode::InvalidArgument,
            "the engine cannot be refitted: build it with a refit flag");
    NamedTensors copies;
    for (const auto& [name, t] : weights) {
        const Weight* w = from->find(name);
        require(w != nullptr, ErrorCode::InvalidArgument, "the engine has no weights '", name, "'");
        check_type(*w, t);
        require(!validate || !from->identical || weight_hash(t) == w->hash,
                ErrorCode::InvalidArgument, "weights '", name,
                "' differ from those of the build; the engine was built with kREFIT_IDENTICAL: "
                "build it with kREFIT to give it others");
        copies.emplace(name, t.clone());
    }
    std::vector<std::string> missing = missing_weights(*from, copies);
    require(missing.empty(), ErrorCode::InvalidArgument, "weights ", listed(missing),
            " are missing: set them too");
    auto source = std::make_shared<RefitSource>(*from);
    source->graph = std::make_shared<const Graph>(with_constants(*from->graph, copies));
    source->missing = false;
    Graph g = run_aot_passes(*source->graph,
                             pipeline_options(source->precision, source->disabled_passes));
    check_faces(g, engine.graph());
    auto made = Engine::create(std::move(g), engine.profiles(), engine.metadata());
    if (engine.kernels() != nullptr) {
        made = made->with_kernels(*engine.kernels());
    }
    return made->with_source(std::move(source));
}

// --- from a model --------------------------------------------------------------------------------

namespace {

class ModelWeights {
public:
    explicit ModelWeights(const RefitSource& source) : source_(source) {}

    void visit(const onnx::Model& model) {
        visit(model.graph);
        for (const auto& [key, function] : model.functions) {
            visit(function.nodes);
        }
    }
    NamedTensors finish() {
        std::vector<std::string> missing;
        for (const Weight& w : source_.weights) {
            if (!found_.contains(w.name)) {
                missing.push_back(w.name);
            }
        }
        require(missing.empty(), ErrorCode::InvalidArgument, "the model has no weights ",
                listed(missing), "; it is not the one that the engine was built from");
        return std::move(found_);
    }

private:
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
        check_type(*w, value);
        found_.insert_or_assign(name, std::move(value));
    }

    const RefitSource& source_;
    NamedTensors found_;
};

} // namespace

NamedTensors weights_of_model(const RefitSource& source, const onnx::Model& model) {
    ModelWeights weights(source);
    weights.visit(model);
    return weights.finish();
}

} // namespace ingot
