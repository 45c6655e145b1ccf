// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/parser_refitter.h"

#include "api/tensorrt/convert.h"
#include "onnx/data_type.h"
#include "onnx/import_node.h"
#include "onnx/reader.h"
#include "workflow/refit.h"

#include <algorithm>

namespace ingot::api {

template <class F>
bool ParserRefitter::guarded(std::string_view method, const F& f) noexcept {
    return report_.guard(method, false, [&] {
        try {
            return f();
        } catch (const Error& e) {
            ParserCode code = e.code() == ErrorCode::InvalidArgument ? ParserCode::kREFIT_FAILED
                                                                     : code_for_model(e.code());
            errors_.push_back(std::make_unique<ParserError>(code, e.what(), __LINE__));
            throw;
        }
    });
}

void ParserRefitter::tell_observer(const onnx::Model& model, const NamedTensors& weights) const {
    using Kind = nvonnxparser::RefitTransformKind;
    for (const auto& [name, t] : weights) {
        const auto& all = model.graph.initializers;
        auto it = std::find_if(all.begin(), all.end(),
                               [&, key = name](const onnx::Tensor& i) { return i.name == key; });
        bool fixed = it == all.end();
        const char* source = name.c_str();
        nvonnxparser::RefitRecord record{};
        record.trtName = source;
        record.kind = fixed                     ? Kind::kCONSTANT_NODE
                      : t.dtype() == DType::F64 ? Kind::kDOUBLE_TO_FLOAT
                                                : Kind::kIDENTITY;
        record.onnxDtype = onnx::data_type_number(t.dtype());
        record.trtDtype = data_type_of(t.dtype());
        record.count = t.count();
        record.nbSources = 1;
        record.sourceOnnxNames = &source;
        record.fixedData = fixed ? t.bytes().data() : nullptr;
        record.fixedDataSize = fixed ? t.bytes().size() : 0;
        observer_->onRefittableWeight(record);
    }
}

bool ParserRefitter::refit(const onnx::Model& model) {
    NamedTensors weights = weights_of_model(refitter_.engine(), model);
    if (observer_ != nullptr) {
        tell_observer(model, weights);
    }
    refitter_.set(weights);
    bool done = refitter_.refitCudaEngine();
    require(done, ErrorCode::InvalidArgument,
            "the engine was not refitted: the refitter has reported why");
    return true;
}

bool ParserRefitter::refitFromBytes(const void* model, size_t size, const char* path) noexcept {
    return guarded("IParserRefitter::refitFromBytes", [&] {
        model_.read_bytes(model, size, path);
        return refit(*model_.get());
    });
}

bool ParserRefitter::refitFromFile(const char* onnx_model_file) noexcept {
    return guarded("IParserRefitter::refitFromFile", [&] {
        model_.read_file(onnx_model_file);
        return refit(*model_.get());
    });
}

bool ParserRefitter::loadModelProto(const void* model, size_t size, const char* path) noexcept {
    return guarded("IParserRefitter::loadModelProto", [&] {
        model_.read_bytes_without_data(model, size, path);
        return true;
    });
}

bool ParserRefitter::loadInitializer(const char* name, const void* data, size_t size) noexcept {
    return guarded("IParserRefitter::loadInitializer", [&] {
        model_.set_initializer(name, data, size);
        return true;
    });
}

bool ParserRefitter::refitModelProto() noexcept {
    return guarded("IParserRefitter::refitModelProto", [&] { return refit(*model_.get()); });
}

const nvonnxparser::IParserError* ParserRefitter::getError(int32_t index) const noexcept {
    using Found = const nvonnxparser::IParserError*;
    return report_.guard("IParserRefitter::getError", Found{nullptr}, [&]() -> Found {
        require(index >= 0 && static_cast<size_t>(index) < errors_.size(),
                ErrorCode::InvalidArgument, "index ", index, " is out of range: there are ",
                errors_.size());
        return errors_[static_cast<size_t>(index)].get();
    });
}

} // namespace ingot::api

extern "C" void* createNvOnnxParserRefitter_INTERNAL(void* refitter, void* logger,
                                                     int32_t version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    return ingot::api::Report(log).guard(
        "createParserRefitter", static_cast<void*>(nullptr), [&]() -> void* {
            ingot::require(version <= NV_ONNX_PARSER_VERSION, ingot::ErrorCode::Unsupported,
                           "the program was compiled with headers of version ", version,
                           ", this library is ", NV_ONNX_PARSER_VERSION);
            ingot::require(refitter != nullptr, ingot::ErrorCode::InvalidArgument,
                           "the refitter is null");
            auto* face = static_cast<nvinfer1::IRefitter*>(refitter);
            nvonnxparser::IParserRefitter* made =
                std::make_unique<ingot::api::ParserRefitter>(
                    static_cast<ingot::api::Refitter&>(*face), log)
                    .release();
            return made;
        });
}
