// SPDX-License-Identifier: Apache-2.0
// A host for tests without ONNX Runtime: it logs, and runs nodes of one input and one output of
// floats in host memory.
#pragma once

#include "plugins/onnxruntime/host.h"
#include "plugins/onnxruntime/log.h"

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ingot::ort::test {

inline std::atomic<int> messages = 0; // that were logged

struct FakeTensor {
    std::vector<int64_t> dims;
    std::vector<float> values;
    OrtValue* value() { return reinterpret_cast<OrtValue*>(this); }
};

struct FakeRun {
    FakeTensor input;
    FakeTensor output;
    explicit FakeRun(FakeTensor in) : input(std::move(in)) {}
    OrtKernelContext* context() { return reinterpret_cast<OrtKernelContext*>(this); }
};

/// The text of a status, which it deletes.
inline std::string text_of(OrtStatus* status) {
    std::unique_ptr<std::string> text(reinterpret_cast<std::string*>(status));
    return text == nullptr ? std::string() : *text;
}

namespace detail {

template <class T>
const FakeTensor& tensor(const T* value) {
    return *reinterpret_cast<const FakeTensor*>(value);
}

inline void add_logging(OrtApi& a) {
    a.Logger_LogMessage = [](const OrtLogger*, OrtLoggingLevel, const char*, const char*, int,
                             const char*) -> OrtStatus* {
        ++messages;
        return nullptr;
    };
    a.Logger_GetLoggingSeverityLevel = [](const OrtLogger*, OrtLoggingLevel* out) -> OrtStatus* {
        *out = ORT_LOGGING_LEVEL_VERBOSE;
        return nullptr;
    };
    a.CreateStatus = [](OrtErrorCode, const char* text) {
        return reinterpret_cast<OrtStatus*>(std::make_unique<std::string>(text).release());
    };
    a.ReleaseStatus = [](OrtStatus* status) { text_of(status); };
}

inline void add_tensors(OrtApi& a) {
    a.GetTensorTypeAndShape = [](const OrtValue* v, OrtTensorTypeAndShapeInfo** out) -> OrtStatus* {
        *out = reinterpret_cast<OrtTensorTypeAndShapeInfo*>(const_cast<OrtValue*>(v));
        return nullptr;
    };
    a.ReleaseTensorTypeAndShapeInfo = [](OrtTensorTypeAndShapeInfo*) {};
    a.GetTensorElementType = [](const OrtTensorTypeAndShapeInfo*,
                                ONNXTensorElementDataType* out) -> OrtStatus* {
        *out = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
        return nullptr;
    };
    a.GetDimensionsCount = [](const OrtTensorTypeAndShapeInfo* t, size_t* out) -> OrtStatus* {
        *out = tensor(t).dims.size();
        return nullptr;
    };
    a.GetDimensions = [](const OrtTensorTypeAndShapeInfo* t, int64_t* out, size_t n) -> OrtStatus* {
        std::copy_n(tensor(t).dims.begin(), n, out);
        return nullptr;
    };
    a.GetTensorSizeInBytes = [](const OrtValue* v, size_t* out) -> OrtStatus* {
        *out = tensor(v).values.size() * sizeof(float);
        return nullptr;
    };
    a.GetTensorData = [](const OrtValue* v, const void** out) -> OrtStatus* {
        *out = tensor(v).values.data();
        return nullptr;
    };
    a.GetTensorMutableData = [](OrtValue* v, void** out) -> OrtStatus* {
        *out = const_cast<float*>(tensor(v).values.data());
        return nullptr;
    };
    a.KernelContext_GetInput = [](const OrtKernelContext* c, size_t,
                                  const OrtValue** out) -> OrtStatus* {
        *out = reinterpret_cast<const OrtValue*>(&reinterpret_cast<const FakeRun*>(c)->input);
        return nullptr;
    };
    a.KernelContext_GetOutput = [](OrtKernelContext* c, size_t, const int64_t* dims, size_t n,
                                   OrtValue** out) -> OrtStatus* {
        FakeTensor& t = reinterpret_cast<FakeRun*>(c)->output;
        t.dims.assign(dims, dims + n);
        auto count = std::accumulate(dims, dims + n, int64_t{1}, std::multiplies<>());
        t.values.assign(static_cast<size_t>(count), -1000.F); // poison
        *out = t.value();
        return nullptr;
    };
}

} // namespace detail

inline const OrtApi& fake_api() {
    static const OrtApi api = [] {
        OrtApi a{};
        detail::add_logging(a);
        detail::add_tensors(a);
        return a;
    }();
    return api;
}

inline Host fake_host() {
    Host host;
    host.api = &fake_api();
    host.version = newest_api;
    return host;
}

inline std::shared_ptr<ApiLogger> new_logger() {
    static const int logger = 0;
    return std::make_shared<ApiLogger>(
        Log(fake_host(), reinterpret_cast<const OrtLogger*>(&logger)), true);
}

} // namespace ingot::ort::test
