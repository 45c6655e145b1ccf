// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/host.h"

#include <charconv>

namespace ingot::ort {

uint32_t api_of_release(std::string_view release) {
    size_t dot = release.find('.');
    uint32_t minor = 0;
    if (dot == std::string_view::npos || release.substr(0, dot) != "1") {
        return 0;
    }
    const char* end = release.data() + release.size();
    auto [at, error] = std::from_chars(release.data() + dot + 1, end, minor);
    return error == std::errc() && (at == end || *at == '.') ? minor : 0;
}

void Host::check(OrtStatus* status) const {
    if (status == nullptr) {
        return;
    }
    std::string text = api->GetErrorMessage(status);
    OrtErrorCode code = api->GetErrorCode(status);
    api->ReleaseStatus(status);
    fail(code == ORT_INVALID_ARGUMENT  ? ErrorCode::InvalidArgument
         : code == ORT_NOT_IMPLEMENTED ? ErrorCode::Unsupported
                                       : ErrorCode::Internal,
         text);
}

OrtStatus* Host::status(OrtErrorCode code, const char* text) const noexcept {
    return api->CreateStatus(code, text);
}

OrtStatus* Host::status(const Error& e) const noexcept {
    OrtErrorCode code = e.code() == ErrorCode::InvalidArgument ? ORT_INVALID_ARGUMENT
                        : e.code() == ErrorCode::Unsupported   ? ORT_NOT_IMPLEMENTED
                        : e.code() == ErrorCode::InvalidModel  ? ORT_INVALID_GRAPH
                                                               : ORT_EP_FAIL;
    try {
        return status(code, str("[NvTensorRTRTX EP] ", e.what()).c_str());
    } catch (...) {
        return status(code, e.what());
    }
}

} // namespace ingot::ort
