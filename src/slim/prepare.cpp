// SPDX-License-Identifier: Apache-2.0
#include "slim/prepare.h"

#include "base/error.h"
#include "onnx/data_type.h"
#include "onnx/import_node.h"
#include "slim/names.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_set>

namespace ingot::slim {

namespace {

// Reading a tensor copies it when its elements are not aligned; large ones are copied once, here.
void align(onnx::Tensor& t) {
    const onnx::DataTypeInfo* info = onnx::find_data_type(t.data_type);
    const size_t width = info == nullptr ? 1 : static_cast<size_t>(std::max(info->bits, 8)) / 8;
    constexpr size_t small = 4096;
    if (t.bytes.size() < small || std::bit_cast<uintptr_t>(t.bytes.data()) % width == 0) {
        return;
    }
    const auto words = std::make_shared<std::vector<uint64_t>>((t.bytes.size() + 7) / 8);
    std::memcpy(words->data(), t.bytes.data(), t.bytes.size());
    t.bytes = std::as_bytes(std::span(*words)).first(t.bytes.size());
    t.owner = words;
}

void align(onnx::Graph& g) {
    for (onnx::Tensor& t : g.initializers) {
        align(t);
    }
    for (onnx::Node& n : g.nodes) {
        for (onnx::Attribute& a : n.attributes) {
            align(a.t);
        }
        each_body(n, [](onnx::Graph& b) { align(b); });
    }
}

void clear_value_info(onnx::Graph& g) {
    g.value_info.clear();
    for (onnx::Node& n : g.nodes) {
        each_body(n, clear_value_info);
    }
}

void freeze_initializers(onnx::Model& model) {
    std::unordered_set<std::string> constants;
    for (const onnx::Tensor& t : model.graph.initializers) {
        constants.insert(t.name);
    }
    std::erase_if(model.graph.inputs,
                  [&](const onnx::ValueInfo& v) { return constants.contains(v.name); });
}

// Every occurrence of a symbolic size takes its new value.
void set_input_shape(onnx::Model& model, const std::string& name, const Shape& shape) {
    std::vector<onnx::ValueInfo>& inputs = model.graph.inputs;
    auto at = std::find_if(inputs.begin(), inputs.end(),
                           [&](const onnx::ValueInfo& v) { return v.name == name; });
    if (at == inputs.end()) {
        std::vector<std::string> known;
        for (const onnx::ValueInfo& v : inputs) {
            known.push_back(v.name);
        }
        const std::string near = nearest(name, known);
        fail(ErrorCode::InvalidArgument, "the model has no input '", name, "'; it has ",
             join(known, ", "), near.empty() ? "" : "; did you mean " + near + "?");
    }
    require(!at->has_shape || at->dims.size() == shape.size(), ErrorCode::InvalidArgument,
            "input '", name, "' has ", at->dims.size(), " dimensions, got ", shape.size());
    std::map<std::string, int64_t> named;
    at->dims.resize(shape.size());
    at->has_shape = true;
    for (size_t k = 0; k < shape.size(); ++k) {
        const std::string param = at->dims[k].param;
        if (!onnx::is_anonymous(param)) {
            const auto [known, fresh] = named.emplace(param, shape[k]);
            require(fresh || known->second == shape[k], ErrorCode::InvalidArgument, "input '", name,
                    "': dimension '", param, "' cannot be ", known->second, " and ", shape[k]);
        }
        at->dims[k] = {shape[k], ""};
    }
    for (std::vector<onnx::ValueInfo>* list : {&inputs, &model.graph.outputs}) {
        for (onnx::ValueInfo& v : *list) {
            for (onnx::ShapeDim& d : v.dims) {
                auto known = named.find(d.param);
                d = known == named.end() ? d : onnx::ShapeDim{known->second, ""};
            }
        }
    }
}

onnx::ShapeDim written(const Dim& d) {
    const std::string name(d.symbol_name());
    const bool named = !name.empty() && !name.starts_with('?') && !name.starts_with('~');
    return {d.is_const() ? d.value() : -1, named ? name : ""};
}

onnx::ValueInfo written(const std::string& name, const Type& t) {
    onnx::ValueInfo v;
    v.name = name;
    v.kind = onnx::ValueKind::Tensor;
    v.elem_type = onnx::data_type_number(t.dtype);
    v.has_shape = true;
    for (const Dim& d : t.dims) {
        v.dims.push_back(written(d));
    }
    return v;
}

} // namespace

onnx::Model prepared(const onnx::Model& model, const SlimOptions& options) {
    onnx::Model out = deep_copy(model);
    make_names_unique(out);
    align(out.graph);
    if (!options.keep_initializer_inputs) {
        freeze_initializers(out);
    }
    // Older files list every initializer as an input too.
    out.ir_version = std::max<int64_t>(out.ir_version, 4);
    for (const auto& [name, shape] : options.input_shapes) {
        set_input_shape(out, name, shape);
    }
    if (!options.input_shapes.empty()) {
        clear_value_info(out.graph);
    }
    return out;
}

void write_types(onnx::Model& model, const Analysis& analysis, bool outputs) {
    onnx::Graph& g = model.graph;
    std::map<std::string, onnx::ValueInfo> old;
    for (onnx::ValueInfo& v : g.value_info) {
        old.emplace(v.name, std::move(v));
    }
    g.value_info.clear();
    std::unordered_set<std::string> declared;
    for (onnx::ValueInfo& v : g.outputs) {
        declared.insert(v.name);
        const TensorInfo* f = analysis.find(g, v.name);
        if (f != nullptr && v.kind == onnx::ValueKind::None) {
            v = written(v.name, f->type);
        }
        for (size_t k = 0; outputs && f != nullptr && k < v.dims.size(); ++k) {
            const Dim& d = f->type.dims.at(k);
            const bool wrong = v.dims[k].value >= 0 && !d.is_const(v.dims[k].value);
            v.dims[k] = wrong || d.is_const() ? written(d) : v.dims[k];
        }
    }
    for (const onnx::Node& n : g.nodes) {
        for (const std::string& o : n.outputs) {
            const TensorInfo* f = analysis.find(g, o);
            if (o.empty() || declared.contains(o)) {
                continue;
            }
            if (f != nullptr) {
                g.value_info.push_back(written(o, f->type));
            } else if (auto at = old.find(o); at != old.end()) {
                g.value_info.push_back(at->second);
            }
        }
    }
}

} // namespace ingot::slim
