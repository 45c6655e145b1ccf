// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/report.h"

#include "base/cut_text.h"

#include <cstdio>
#include <stdexcept>
#include <string>

namespace ingot::api {

namespace {

constexpr size_t emergency_bytes = 1024;

} // namespace

nvinfer1::ErrorCode api_code(ErrorCode c) noexcept {
    using Api = nvinfer1::ErrorCode;
    switch (c) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::InvalidModel:
    case ErrorCode::InvalidEngine:
        return Api::kINVALID_ARGUMENT;
    case ErrorCode::Unsupported:
        return Api::kUNSUPPORTED_STATE;
    case ErrorCode::OutOfMemory:
        return Api::kFAILED_ALLOCATION;
    case ErrorCode::Io:
        return Api::kFAILED_INITIALIZATION;
    case ErrorCode::Interrupted:
    case ErrorCode::Device:
        return Api::kFAILED_EXECUTION;
    case ErrorCode::Internal:
        break;
    }
    return Api::kINTERNAL_ERROR;
}

Report::Report(nvinfer1::ILogger* logger, nvinfer1::IErrorRecorder* recorder) noexcept
    : logger_(logger), recorder_(nullptr) {
    set_recorder(recorder);
}

Report::Report(const Report& o) noexcept : Report(o.logger_, o.recorder_) {}

Report& Report::operator=(const Report& o) noexcept {
    if (this != &o) {
        logger_ = o.logger_;
        set_recorder(o.recorder_);
    }
    return *this;
}

Report::~Report() {
    set_recorder(nullptr);
}

void Report::set_recorder(nvinfer1::IErrorRecorder* recorder) noexcept {
    if (recorder != nullptr) {
        recorder->incRefCount();
    }
    if (recorder_ != nullptr) {
        recorder_->decRefCount();
    }
    recorder_ = recorder;
}

void Report::error(nvinfer1::ErrorCode code, std::string_view method,
                   std::string_view text) const noexcept {
    constexpr size_t most = nvinfer1::IErrorRecorder::kMAX_DESC_LENGTH;
    constexpr std::string_view colon = ": ";
    if (recorder_ != nullptr) {
        recorder_->reportError(code, CutText<most + 1>({method, colon, text}).c_str());
        if (method.size() + colon.size() + text.size() <= most) {
            return;
        }
    }
    // For errors that do not fit a recorder, and without a recorder.
    auto severity = code == nvinfer1::ErrorCode::kINTERNAL_ERROR
                        ? nvinfer1::ILogger::Severity::kINTERNAL_ERROR
                        : nvinfer1::ILogger::Severity::kERROR;
    try {
        write(severity, str(method, colon, text).c_str());
    } catch (const std::bad_alloc&) {
        write(severity, CutText<emergency_bytes>({method, colon, text}).c_str());
    }
}

void Report::log(nvinfer1::ILogger::Severity severity, std::string_view text) const noexcept {
    try {
        write(severity, std::string(text).c_str());
    } catch (const std::bad_alloc&) {
        write(severity, CutText<emergency_bytes>({text}).c_str());
    }
}

void Report::write(nvinfer1::ILogger::Severity severity, const char* line) const noexcept {
    if (logger_ != nullptr) {
        logger_->log(severity, line);
    } else if (severity <= nvinfer1::ILogger::Severity::kWARNING) {
        std::fprintf(stderr, "ingot: %s\n", line);
    }
}

void Report::report_current(std::string_view method) const noexcept {
    try {
        throw;
    } catch (const Error& e) {
        error(api_code(e.code()), method, e.what());
    } catch (const std::bad_alloc&) {
        error(nvinfer1::ErrorCode::kFAILED_ALLOCATION, method, "the system has no memory left");
    } catch (const std::length_error&) { // more elements than memory could have
        error(nvinfer1::ErrorCode::kFAILED_ALLOCATION, method, "a size is larger than any memory");
    } catch (const std::exception& e) {
        error(nvinfer1::ErrorCode::kINTERNAL_ERROR, method, e.what());
    } catch (...) {
        error(nvinfer1::ErrorCode::kUNSPECIFIED_ERROR, method, "an object of the caller threw");
    }
}

} // namespace ingot::api
