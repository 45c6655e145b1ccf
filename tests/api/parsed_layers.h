// SPDX-License-Identifier: Apache-2.0
// Small ONNX models for the parser, and operations on each class of layer: checking that a layer
// has the class of its type, reading it, and setting a setting to its current value.
#pragma once

#include "NvOnnxParser.h"
#include "api/network_fixture.h"
#include "onnx/data_type.h"
#include "onnx/model.h"
#include "onnx/writer.h"

#include <string>
#include <vector>

namespace ingot::test {

// --- models --------------------------------------------------------------------------------------

inline onnx::Attribute attr(const char* name, onnx::AttributeType type) {
    onnx::Attribute a;
    a.name = name;
    a.type = type;
    return a;
}
inline onnx::Attribute ints(const char* name, std::vector<int64_t> v) {
    onnx::Attribute a = attr(name, onnx::AttributeType::Ints);
    a.ints = std::move(v);
    return a;
}
inline onnx::Attribute number(const char* name, int64_t v) {
    onnx::Attribute a = attr(name, onnx::AttributeType::Int);
    a.i = v;
    return a;
}
inline onnx::Attribute real(const char* name, float v) {
    onnx::Attribute a = attr(name, onnx::AttributeType::Float);
    a.f = v;
    return a;
}
inline onnx::Attribute word(const char* name, std::string v) {
    onnx::Attribute a = attr(name, onnx::AttributeType::String);
    a.s = std::move(v);
    return a;
}

inline onnx::Tensor stored(const std::string& name, const Tensor& t) {
    onnx::Tensor out;
    out.name = name;
    out.dims = t.shape();
    out.data_type = onnx::data_type_number(t.dtype());
    auto kept = std::make_shared<Tensor>(t);
    out.bytes = kept->bytes();
    out.owner = kept;
    return out;
}
inline onnx::Attribute contents(const char* name, const Tensor& t) {
    onnx::Attribute a = attr(name, onnx::AttributeType::Tensor);
    a.t = stored("", t);
    return a;
}

inline onnx::Node op(const char* type, std::vector<std::string> in, std::vector<std::string> out,
                     std::vector<onnx::Attribute> attributes = {}) {
    onnx::Node n;
    n.op_type = type;
    n.name = std::string("the ") + type;
    n.inputs = std::move(in);
    n.outputs = std::move(out);
    n.attributes = std::move(attributes);
    return n;
}

/// A model of nodes; results are those called y, y2, ...
struct Made {
    std::vector<onnx::Node> nodes;
    std::vector<std::pair<std::string, Tensor>> inputs;
    std::vector<std::pair<std::string, Tensor>> initializers;
    int64_t opset = 23;
    bool open = false; // the first dimension of inputs is only known at run time

    std::string bytes() const {
        onnx::Model m;
        m.ir_version = 10;
        m.opset_imports[""] = opset;
        m.graph.name = "made";
        m.graph.nodes = nodes;
        auto info = [&](const std::string& name, const Tensor& t) {
            onnx::ValueInfo v;
            v.name = name;
            v.kind = onnx::ValueKind::Tensor;
            v.elem_type = onnx::data_type_number(t.dtype());
            v.has_shape = true;
            for (int64_t d : t.shape()) {
                bool first = v.dims.empty();
                v.dims.push_back(open && first ? onnx::ShapeDim{-1, "n"} : onnx::ShapeDim{d, ""});
            }
            return v;
        };
        for (const auto& [name, t] : inputs) {
            m.graph.inputs.push_back(info(name, t));
        }
        for (const auto& [name, t] : initializers) {
            m.graph.initializers.push_back(stored(name, t));
        }
        for (const onnx::Node& n : nodes) {
            for (const std::string& out : n.outputs) {
                if (out.starts_with("y")) {
                    onnx::ValueInfo v;
                    v.name = out;
                    v.kind = onnx::ValueKind::Tensor;
                    v.elem_type = 1;
                    m.graph.outputs.push_back(v);
                }
            }
        }
        return onnx::write_model(m);
    }
    std::vector<Tensor> values() const {
        std::vector<Tensor> out;
        for (const auto& [name, t] : inputs) {
            out.push_back(t);
        }
        return out;
    }
};

class ParsedTest : public NetworkTest {
protected:
    /// A fresh network of the model.
    bool parse(const std::string& bytes) {
        network.reset(builder->createNetworkV2(0));
        parser.reset(nvonnxparser::createParser(*network, logger));
        bool done = parser->parse(bytes.data(), bytes.size());
        EXPECT_TRUE(done) << (logger.errors.empty() ? "" : logger.errors.back());
        return done;
    }
    bool parse(const Made& m) { return parse(m.bytes()); }
    /// The layer of a node, as its class.
    template <class T>
    T& layer(const char* type_of_node) {
        std::string name = std::string("the ") + type_of_node;
        for (int32_t i = 0; i < network->getNbLayers(); ++i) {
            nv::ILayer* l = network->getLayer(i);
            if (l->getName() == name) {
                EXPECT_NE(dynamic_cast<T*>(l), nullptr) << name << " is of another class";
                return *static_cast<T*>(l);
            }
        }
        throw std::runtime_error("no layer is called " + name);
    }
    std::unique_ptr<nvonnxparser::IParser> parser;
};

// --- classes -------------------------------------------------------------------------------------

/// Reads every getter of the layer's class. False where the layer's class differs from its type, or
/// a getter returns an invalid setting.
bool read_layer(nv::ILayer& layer);
/// Sets one setting to its current value: from then on the layer follows its settings. False where
/// its class has no setting, or refuses it.
bool touch_layer(nv::ILayer& layer);
/// Whether the layer follows its node, rather than its settings.
bool follows_node(nv::ILayer& layer);

} // namespace ingot::test
