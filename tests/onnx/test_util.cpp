// SPDX-License-Identifier: Apache-2.0
#include "onnx/test_util.h"

#include "source_dir.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>

namespace ingot::onnx::test {
namespace {

// Compares member by member and keeps the path to the first difference.
class Comparison {
public:
    std::string found;

    template <class T>
    void value(const std::string& where, const T& a, const T& b) {
        if (found.empty() && !(a == b)) {
            found = where;
        }
    }
    template <class T, class F>
    void list(const std::string& where, const std::vector<T>& a, const std::vector<T>& b,
              const F& compare) {
        value(where + ".size", a.size(), b.size());
        for (size_t i = 0; found.empty() && i < a.size(); ++i) {
            compare(str(where, "[", i, "]"), a[i], b[i]);
        }
    }

    void tensor(const std::string& where, const Tensor& a, const Tensor& b) {
        value(where + ".name", a.name, b.name);
        value(where + ".dims", a.dims, b.dims);
        value(where + ".data_type", a.data_type, b.data_type);
        value(where + ".string_count", a.string_count, b.string_count);
        value(where + ".bytes",
              std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()), true);
    }
    void sparse(const std::string& where, const SparseTensor& a, const SparseTensor& b) {
        tensor(where + ".values", a.values, b.values);
        tensor(where + ".indices", a.indices, b.indices);
        value(where + ".dims", a.dims, b.dims);
    }
    void info(const std::string& where, const ValueInfo& a, const ValueInfo& b) {
        value(where + ".name", a.name, b.name);
        value(where + ".kind", a.kind, b.kind);
        value(where + ".elem_type", a.elem_type, b.elem_type);
        value(where + ".has_shape", a.has_shape, b.has_shape);
        value(where + ".dims", a.dims, b.dims);
        value(where + ".type_message", a.type_message, b.type_message);
    }
    void attribute(const std::string& where, const Attribute& a, const Attribute& b);
    void node(const std::string& where, const Node& a, const Node& b);
    void graph(const std::string& where, const Graph& a, const Graph& b);
    void function(const std::string& where, const FunctionProto& a, const FunctionProto& b);
};

void Comparison::attribute(const std::string& where, const Attribute& a, const Attribute& b) {
    const std::string at = where + " " + a.name;
    const auto tensors = [&](const std::string& w, const Tensor& x, const Tensor& y) {
        tensor(w, x, y);
    };
    value(at + ".name", a.name, b.name);
    value(at + ".type", a.type, b.type);
    value(at + ".f", std::bit_cast<uint32_t>(a.f), std::bit_cast<uint32_t>(b.f));
    value(at + ".i", a.i, b.i);
    value(at + ".s", a.s, b.s);
    tensor(at + ".t", a.t, b.t);
    value(at + ".floats", a.floats, b.floats);
    value(at + ".ints", a.ints, b.ints);
    value(at + ".strings", a.strings, b.strings);
    list(at + ".tensors", a.tensors, b.tensors, tensors);
    value(at + ".ref_attr_name", a.ref_attr_name, b.ref_attr_name);
    value(at + ".has_g", a.g != nullptr, b.g != nullptr);
    value(at + ".has_sparse", a.sparse_tensor != nullptr, b.sparse_tensor != nullptr);
    if (found.empty() && a.g != nullptr) {
        graph(at + ".g", *a.g, *b.g);
    }
    if (found.empty() && a.sparse_tensor != nullptr) {
        sparse(at + ".sparse_tensor", *a.sparse_tensor, *b.sparse_tensor);
    }
    list(at + ".graphs", a.graphs, b.graphs,
         [&](const std::string& w, const std::shared_ptr<Graph>& x,
             const std::shared_ptr<Graph>& y) { graph(w, *x, *y); });
}

void Comparison::node(const std::string& where, const Node& a, const Node& b) {
    value(where + ".op_type", a.op_type, b.op_type);
    value(where + ".domain", a.domain, b.domain);
    value(where + ".overload", a.overload, b.overload);
    value(where + ".name", a.name, b.name);
    value(where + ".inputs", a.inputs, b.inputs);
    value(where + ".outputs", a.outputs, b.outputs);
    list(where + ".attributes", a.attributes, b.attributes,
         [&](const std::string& w, const Attribute& x, const Attribute& y) { attribute(w, x, y); });
}

void Comparison::graph(const std::string& where, const Graph& a, const Graph& b) {
    const auto infos = [&](const std::string& w, const ValueInfo& x, const ValueInfo& y) {
        info(w, x, y);
    };
    value(where + ".name", a.name, b.name);
    list(where + ".nodes", a.nodes, b.nodes,
         [&](const std::string& w, const Node& x, const Node& y) { node(w, x, y); });
    list(where + ".initializers", a.initializers, b.initializers,
         [&](const std::string& w, const Tensor& x, const Tensor& y) { tensor(w, x, y); });
    list(where + ".sparse_initializers", a.sparse_initializers, b.sparse_initializers,
         [&](const std::string& w, const SparseTensor& x, const SparseTensor& y) {
             sparse(w, x, y);
         });
    list(where + ".inputs", a.inputs, b.inputs, infos);
    list(where + ".outputs", a.outputs, b.outputs, infos);
    list(where + ".value_info", a.value_info, b.value_info, infos);
    list(where + ".quantization_annotation", a.quantization_annotation, b.quantization_annotation,
         [&](const std::string& w, const QuantizationAnnotation& x,
             const QuantizationAnnotation& y) {
             value(w, x.tensor_name, y.tensor_name);
             value(w, x.parameters, y.parameters);
         });
}

void Comparison::function(const std::string& where, const FunctionProto& a,
                          const FunctionProto& b) {
    value(where + ".key", a.key == b.key, true);
    value(where + ".inputs", a.inputs, b.inputs);
    value(where + ".outputs", a.outputs, b.outputs);
    value(where + ".attributes", a.attributes, b.attributes);
    value(where + ".opset_imports", a.opset_imports, b.opset_imports);
    list(where + ".attribute_protos", a.attribute_protos, b.attribute_protos,
         [&](const std::string& w, const Attribute& x, const Attribute& y) { attribute(w, x, y); });
    list(where + ".nodes", a.nodes, b.nodes,
         [&](const std::string& w, const Node& x, const Node& y) { node(w, x, y); });
    list(where + ".value_info", a.value_info, b.value_info,
         [&](const std::string& w, const ValueInfo& x, const ValueInfo& y) { info(w, x, y); });
}

} // namespace

TempFolder::TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ingot_onnx_XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, ErrorCode::Io, "no temporary folder");
    path_ = pattern;
}

TempFolder::~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string shared_folder() {
    const char* variable = std::getenv("INGOT_SHARED");
    const std::string folder = variable != nullptr ? variable : source_dir() + "/../shared";
    return std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<std::string> onnx_files(const std::string& folder) {
    std::vector<std::string> paths;
    if (std::filesystem::is_directory(folder)) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            if (entry.path().extension() == ".onnx") {
                paths.push_back(entry.path().string());
            }
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::string difference(const Model& a, const Model& b) {
    Comparison c;
    c.value("ir_version", a.ir_version, b.ir_version);
    c.value("producer_name", a.producer_name, b.producer_name);
    c.value("producer_version", a.producer_version, b.producer_version);
    c.value("domain", a.domain, b.domain);
    c.value("model_version", a.model_version, b.model_version);
    c.value("opset_imports", a.opset_imports, b.opset_imports);
    c.value("metadata_props", a.metadata_props, b.metadata_props);
    c.graph("graph", a.graph, b.graph);
    c.value("functions.size", a.functions.size(), b.functions.size());
    for (auto x = a.functions.begin(), y = b.functions.begin();
         c.found.empty() && x != a.functions.end(); ++x, ++y) {
        c.function("function " + x->first.name, x->second, y->second);
    }
    return c.found;
}

} // namespace ingot::onnx::test
