// SPDX-License-Identifier: Apache-2.0
// ingotVisitTensors: the constants of an ONNX model, as the reader finds them.
#include "NvInferRuntime.h"
#include "api/tensorrt/report.h"
#include "ingot.h"
#include "onnx/data_type.h"
#include "onnx/reader.h"

namespace ingot::api {

namespace {

class Visit {
public:
    Visit(TensorVisitor visitor, void* user) : visitor_(visitor), user_(user) {}

    void graph(const onnx::Graph& g) const {
        for (const onnx::Tensor& t : g.initializers) {
            tell(t.name, t);
        }
        nodes(g.nodes);
    }

    void nodes(const std::vector<onnx::Node>& all) const {
        for (const onnx::Node& n : all) {
            if (n.op_type == "Constant" && n.domain.empty() && n.outputs.size() == 1) {
                constant(n);
            }
            for (const onnx::Attribute& a : n.attributes) {
                if (a.g != nullptr) {
                    graph(*a.g);
                }
                for (const auto& body : a.graphs) {
                    graph(*body);
                }
            }
        }
    }

private:
    void tell(const std::string& name, const onnx::Tensor& t) const {
        const onnx::DataTypeInfo* type = onnx::find_data_type(t.data_type);
        if (type == nullptr || type->bits == 0) {
            return; // strings are not kept
        }
        bool is_missing = !t.missing.empty();
        visitor_({name.c_str(), t.data_type, t.dims.data(), static_cast<int32_t>(t.dims.size()),
                  is_missing ? nullptr : t.bytes.data(), is_missing ? 0 : t.bytes.size(),
                  is_missing ? t.missing.c_str() : nullptr},
                 user_);
    }

    template <class T>
    void numbers(const std::string& name, DType dtype, std::span<const T> all, bool is_list) const {
        onnx::Tensor t;
        if (is_list) {
            t.dims.push_back(static_cast<int64_t>(all.size()));
        }
        t.data_type = onnx::data_type_number(dtype);
        t.bytes = std::as_bytes(all);
        tell(name, t);
    }

    void constant(const onnx::Node& n) const {
        for (const onnx::Attribute& a : n.attributes) {
            const std::string& name = n.outputs[0];
            switch (a.type) {
            case onnx::AttributeType::Tensor:
                tell(name, a.t);
                break;
            case onnx::AttributeType::Float:
                numbers(name, DType::F32, std::span(&a.f, 1), false);
                break;
            case onnx::AttributeType::Floats:
                numbers(name, DType::F32, std::span<const float>(a.floats), true);
                break;
            case onnx::AttributeType::Int:
                numbers(name, DType::I64, std::span(&a.i, 1), false);
                break;
            case onnx::AttributeType::Ints:
                numbers(name, DType::I64, std::span<const int64_t>(a.ints), true);
                break;
            default:
                break;
            }
        }
    }

    TensorVisitor visitor_;
    void* user_;
};

} // namespace

} // namespace ingot::api

extern "C" bool ingotVisitTensors(nvinfer1::ILogger* logger, const void* model, size_t size,
                                  const char* folder, ingot::TensorVisitor visit,
                                  void* user) noexcept {
    using namespace ingot; // NOLINT(google-build-using-namespace)
    return api::Report(logger).guard("visitTensors", false, [&] {
        require(model != nullptr && size > 0 && visit != nullptr, ErrorCode::InvalidArgument,
                "the model is empty, or there is nobody to tell");
        const onnx::Model read = onnx::read_model_without_data(
            {static_cast<const std::byte*>(model), size}, folder == nullptr ? "" : folder, nullptr);
        const api::Visit visitor(visit, user);
        visitor.graph(read.graph);
        for (const auto& [key, function] : read.functions) {
            visitor.nodes(function.nodes);
        }
        return true;
    });
}
