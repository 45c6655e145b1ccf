// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/host.h"

#include <memory>

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

ErrorCode own_code(TRITONSERVER_Error_Code code) {
    switch (code) {
    case TRITONSERVER_ERROR_INVALID_ARG:
    case TRITONSERVER_ERROR_NOT_FOUND:
    case TRITONSERVER_ERROR_ALREADY_EXISTS:
        return ErrorCode::InvalidArgument;
    case TRITONSERVER_ERROR_UNAVAILABLE:
        return ErrorCode::OutOfMemory;
    case TRITONSERVER_ERROR_UNSUPPORTED:
        return ErrorCode::Unsupported;
    case TRITONSERVER_ERROR_CANCELLED:
        return ErrorCode::Interrupted;
    default:
        return ErrorCode::Internal;
    }
}

ErrorCode own_code(nv::ErrorCode code) {
    switch (code) {
    case nv::ErrorCode::kINVALID_ARGUMENT:
    case nv::ErrorCode::kINVALID_CONFIG:
    case nv::ErrorCode::kINVALID_STATE:
        return ErrorCode::InvalidArgument;
    case nv::ErrorCode::kFAILED_ALLOCATION:
        return ErrorCode::OutOfMemory;
    case nv::ErrorCode::kUNSUPPORTED_STATE:
        return ErrorCode::Unsupported;
    default:
        return ErrorCode::Internal;
    }
}

} // namespace

void check(TRITONSERVER_Error* error) {
    if (error == nullptr) {
        return;
    }
    std::unique_ptr<TRITONSERVER_Error, void (*)(TRITONSERVER_Error*)> owned(
        error, TRITONSERVER_ErrorDelete);
    fail(own_code(TRITONSERVER_ErrorCode(error)), TRITONSERVER_ErrorMessage(error));
}

void ignore(TRITONSERVER_Error* error) noexcept {
    if (error != nullptr) {
        TRITONSERVER_ErrorDelete(error);
    }
}

TRITONSERVER_Error* server_error(TRITONSERVER_Error_Code code, const char* text) noexcept {
    return TRITONSERVER_ErrorNew(code, text);
}

TRITONSERVER_Error_Code server_code(ErrorCode code) noexcept {
    switch (code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::InvalidModel:
    case ErrorCode::InvalidEngine:
        return TRITONSERVER_ERROR_INVALID_ARG;
    case ErrorCode::Unsupported:
        return TRITONSERVER_ERROR_UNSUPPORTED;
    case ErrorCode::OutOfMemory:
        return TRITONSERVER_ERROR_UNAVAILABLE;
    case ErrorCode::Interrupted:
        return TRITONSERVER_ERROR_CANCELLED;
    default:
        return TRITONSERVER_ERROR_INTERNAL;
    }
}

std::string read_json(TRITONSERVER_Message* message) {
    const char* base = nullptr;
    size_t bytes = 0;
    check(TRITONSERVER_MessageSerializeToJson(message, &base, &bytes));
    return std::string(base, bytes);
}

std::string take_json(TRITONSERVER_Message* message) {
    struct Delete {
        void operator()(TRITONSERVER_Message* m) const { ignore(TRITONSERVER_MessageDelete(m)); }
    };
    std::unique_ptr<TRITONSERVER_Message, Delete> owned(message);
    return read_json(message);
}

void log(TRITONSERVER_LogLevel level, const std::string& text) noexcept {
    ignore(TRITONSERVER_LogMessage(level, "ingot", 0, text.c_str()));
}

void ServerLogger::write(Severity severity, const char* message) {
    triton::log(severity == Severity::kWARNING ? TRITONSERVER_LOG_WARN : TRITONSERVER_LOG_VERBOSE,
                str(subject_, ": ", message));
}

nv::ErrorCode ErrorList::getErrorCode(int32_t i) const noexcept {
    return i >= 0 && i < getNbErrors() ? errors_[static_cast<size_t>(i)].code
                                       : nv::ErrorCode::kSUCCESS;
}

nv::IErrorRecorder::ErrorDesc ErrorList::getErrorDesc(int32_t i) const noexcept {
    return i >= 0 && i < getNbErrors() ? errors_[static_cast<size_t>(i)].text.c_str() : "";
}

void ErrorList::clear() noexcept {
    errors_.clear();
    overflowed_ = false;
}

bool ErrorList::reportError(nv::ErrorCode code, ErrorDesc text) noexcept {
    constexpr size_t most = 16;
    try {
        if (errors_.size() < most) {
            errors_.push_back({code, text});
        } else {
            overflowed_ = true;
        }
    } catch (...) {
        overflowed_ = true;
    }
    return false;
}

void ErrorList::raise(const char* otherwise) {
    std::vector<Item> taken;
    taken.swap(errors_);
    overflowed_ = false;
    if (taken.empty()) {
        fail(ErrorCode::Internal, otherwise);
    }
    std::string text;
    for (const Item& e : taken) {
        text += text.empty() ? "" : "\n";
        text += e.text;
    }
    fail(own_code(taken.front().code), text);
}

} // namespace ingot::triton
