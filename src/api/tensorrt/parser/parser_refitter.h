// SPDX-License-Identifier: Apache-2.0
// ParserRefitter: nvonnxparser::IParserRefitter. Finds an engine's weights in a model by name.
#pragma once

#include "api/tensorrt/parser/parser.h"
#include "api/tensorrt/runtime/refitter.h"

namespace ingot::api {

class ParserRefitter final : public nvonnxparser::IParserRefitter {
public:
    ParserRefitter(Refitter& refitter, nv::ILogger* logger)
        : refitter_(refitter), report_(logger) {}
    ~ParserRefitter() noexcept override = default;

    bool refitFromBytes(const void* model, size_t size, const char* path) noexcept override;
    bool refitFromFile(const char* onnx_model_file) noexcept override;
    int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(errors_.size()); }
    const nvonnxparser::IParserError* getError(int32_t index) const noexcept override;
    void clearErrors() noexcept override { errors_.clear(); }
    bool loadModelProto(const void* model, size_t size, const char* path) noexcept override;
    bool loadInitializer(const char* name, const void* data, size_t size) noexcept override;
    bool refitModelProto() noexcept override;
    void setRefitObserver(nvonnxparser::IRefitterObserver* observer) noexcept override {
        observer_ = observer;
    }

private:
    template <class F>
    bool guarded(std::string_view method, const F& f) noexcept;
    bool refit(const onnx::Model& model);
    void tell_observer(const onnx::Model& model, const NamedTensors& weights) const;

    Refitter& refitter_;
    Report report_;
    ParserErrors errors_;
    GivenModel model_;
    nvonnxparser::IRefitterObserver* observer_ = nullptr;
};

} // namespace ingot::api
