// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/host.h"

#include <algorithm>
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

namespace {

/// The bytes of the UTF-8 character at `at`; 0 for bytes that are none.
size_t character_size(std::string_view text, size_t at) {
    auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    size_t size = byte(at) < 0x80                        ? 1
                  : byte(at) >= 0xC2 && byte(at) <= 0xDF ? 2
                  : byte(at) >= 0xE0 && byte(at) <= 0xEF ? 3
                  : byte(at) >= 0xF0 && byte(at) <= 0xF4 ? 4
                                                         : 0;
    if (size == 0 || size > text.size() - at) {
        return 0;
    }
    for (size_t i = 1; i < size; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80) {
            return 0;
        }
    }
    bool is_overlong =
        (byte(at) == 0xE0 && byte(at + 1) < 0xA0) || (byte(at) == 0xF0 && byte(at + 1) < 0x90);
    bool is_outside =
        (byte(at) == 0xED && byte(at + 1) > 0x9F) || (byte(at) == 0xF4 && byte(at + 1) > 0x8F);
    return is_overlong || is_outside ? 0 : size;
}

/// A message with '?' for bytes that are not UTF-8: a name in a damaged model may be anything, and
/// Python drops a message that it cannot decode.
std::string readable(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        size_t size = character_size(text, at);
        out += size == 0 ? std::string_view("?") : text.substr(at, size);
        at += std::max<size_t>(size, 1);
    }
    return out;
}

} // namespace

OrtStatus* Host::status(const Error& e) const noexcept {
    OrtErrorCode code = e.code() == ErrorCode::InvalidArgument ? ORT_INVALID_ARGUMENT
                        : e.code() == ErrorCode::Unsupported   ? ORT_NOT_IMPLEMENTED
                        : e.code() == ErrorCode::InvalidModel  ? ORT_INVALID_GRAPH
                                                               : ORT_EP_FAIL;
    try {
        return status(code, str("[NvTensorRTRTX EP] ", readable(e.what())).c_str());
    } catch (...) {
        return status(code, e.what());
    }
}

} // namespace ingot::ort
