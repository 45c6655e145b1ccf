// SPDX-License-Identifier: Apache-2.0
#include "slim_models.h"

#include "base/error.h"
#include "onnx/data_type.h"
#include "onnx/importer.h"
#include "ops/evaluator.h"
#include "workflow/inputs/inputs.h"

#include <cmath>

namespace ingot::slim_test {

namespace {

onnx::Tensor as_onnx(const Tensor& t, const std::string& name) {
    onnx::Tensor out;
    out.name = name;
    out.dims = t.shape();
    out.data_type = onnx::data_type_number(t.dtype());
    out.bytes = t.bytes();
    out.owner = std::make_shared<const Tensor>(t);
    return out;
}

struct Fill {
    onnx::Attribute& a;
    void operator()(int64_t v) const { a.type = onnx::AttributeType::Int, a.i = v; }
    void operator()(float v) const { a.type = onnx::AttributeType::Float, a.f = v; }
    void operator()(const std::string& v) const { a.type = onnx::AttributeType::String, a.s = v; }
    void operator()(const std::vector<int64_t>& v) const {
        a.type = onnx::AttributeType::Ints, a.ints = v;
    }
    void operator()(const std::vector<float>& v) const {
        a.type = onnx::AttributeType::Floats, a.floats = v;
    }
    void operator()(const Tensor& v) const {
        a.type = onnx::AttributeType::Tensor, a.t = as_onnx(v, "");
    }
    void operator()(const onnx::Graph& v) const {
        a.type = onnx::AttributeType::Graph, a.g = std::make_shared<onnx::Graph>(v);
    }
};

constexpr int64_t named_size = 3;

} // namespace

std::string Builder::fresh() {
    return str(prefix_, count_++);
}

std::string Builder::input(const std::string& name, std::vector<Size> dims, DType dtype) {
    onnx::ValueInfo v;
    v.name = name;
    v.kind = onnx::ValueKind::Tensor;
    v.elem_type = onnx::data_type_number(dtype);
    v.has_shape = true;
    for (const Size& s : dims) {
        const bool number = std::holds_alternative<int64_t>(s);
        v.dims.push_back({number ? std::get<int64_t>(s) : -1,
                          number ? std::string() : std::get<std::string>(s)});
    }
    graph.inputs.push_back(v);
    return name;
}

std::string Builder::constant(const Tensor& t) {
    graph.initializers.push_back(as_onnx(t, fresh()));
    return graph.initializers.back().name;
}

std::string Builder::scalar(double v, DType dtype) {
    return constant(Tensor::scalar(dtype, v));
}

std::string Builder::weights(const Shape& shape, DType dtype) {
    return constant(random_tensor(dtype, shape, 1, str(count_)));
}

std::string Builder::node(const std::string& op, std::vector<std::string> inputs, Attrs attrs) {
    return nodes(op, std::move(inputs), 1, std::move(attrs))[0];
}

std::vector<std::string> Builder::nodes(const std::string& op, std::vector<std::string> inputs,
                                        size_t outputs, Attrs attrs) {
    onnx::Node n;
    n.op_type = op;
    n.inputs = std::move(inputs);
    for (size_t i = 0; i < outputs; ++i) {
        n.outputs.push_back(fresh());
    }
    n.name = op + "_" + n.outputs[0];
    for (const auto& [name, value] : attrs) {
        onnx::Attribute& a = n.attributes.emplace_back();
        a.name = name;
        std::visit(Fill{a}, value);
    }
    graph.nodes.push_back(n);
    return n.outputs;
}

void Builder::output(const std::string& name) {
    graph.outputs.emplace_back();
    graph.outputs.back().name = name;
}

void Builder::outputs(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        output(name);
    }
}

onnx::Model Builder::model() const {
    onnx::Model m;
    m.ir_version = 8;
    m.opset_imports[""] = opset;
    m.graph = graph;
    m.graph.name = "test";
    return m;
}

std::vector<Tensor> run(const onnx::Model& model, uint64_t seed) {
    const Graph g = onnx::import_or_throw(model);
    std::vector<Tensor> inputs;
    for (Value v : g.inputs()) {
        Shape shape;
        for (const Dim& d : g.type(v).dims) {
            shape.push_back(d.as_const().value_or(named_size));
        }
        inputs.push_back(random_tensor(g.type(v).dtype, shape, seed, g.value_name(v)));
    }
    return evaluate(g, inputs);
}

std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& expected,
                       double tolerance) {
    if (got.size() != expected.size()) {
        return str(got.size(), " results, expected ", expected.size());
    }
    for (size_t k = 0; k < got.size(); ++k) {
        if (!(got[k].type() == expected[k].type())) {
            return str("result ", k, " is ", got[k].type(), ", expected ", expected[k].type());
        }
        double largest = 0;
        for (int64_t i = 0; i < got[k].count(); ++i) {
            const double e = expected[k].get_f64(i);
            largest = std::isfinite(e) ? std::max(largest, std::abs(e)) : largest;
        }
        for (int64_t i = 0; i < got[k].count(); ++i) {
            const double a = got[k].get_f64(i);
            const double e = expected[k].get_f64(i);
            const bool same = a == e || (std::isnan(a) && std::isnan(e)) ||
                              std::abs(a - e) <= tolerance * largest;
            if (!same) {
                return str("result ", k, " element ", i, " is ", a, ", expected ", e);
            }
        }
    }
    return "";
}

} // namespace ingot::slim_test
