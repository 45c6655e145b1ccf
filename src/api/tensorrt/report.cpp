// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/report.h"

#include <cstdio>
#include <string>

namespace ingot::api {

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
    try {
        std::string whole = str(method, ": ", text);
        if (recorder_ != nullptr) {
            std::string cut = whole.substr(0, nvinfer1::IErrorRecorder::kMAX_DESC_LENGTH);
            recorder_->reportError(code, cut.c_str());
        }
        // What a recorder cannot hold, and what nobody records.
        if (recorder_ == nullptr || whole.size() > nvinfer1::IErrorRecorder::kMAX_DESC_LENGTH) {
            log(code == nvinfer1::ErrorCode::kINTERNAL_ERROR
                    ? nvinfer1::ILogger::Severity::kINTERNAL_ERROR
                    : nvinfer1::ILogger::Severity::kERROR,
                whole);
        }
    } catch (const std::exception&) {
        log(nvinfer1::ILogger::Severity::kERROR, "an error could not be reported: no memory");
    }
}

void Report::log(nvinfer1::ILogger::Severity severity, std::string_view text) const noexcept {
    try {
        std::string line(text);
        if (logger_ != nullptr) {
            logger_->log(severity, line.c_str());
        } else if (severity <= nvinfer1::ILogger::Severity::kWARNING) {
            std::fprintf(stderr, "ingot: %s\n", line.c_str());
        }
    } catch (const std::exception&) {
        std::fputs("ingot: a message was lost: no memory\n", stderr);
    }
}

void Report::report_current(std::string_view method) const noexcept {
    try {
        throw;
    } catch (const Error& e) {
        error(api_code(e.code()), method, e.what());
    } catch (const std::bad_alloc&) {
        error(nvinfer1::ErrorCode::kFAILED_ALLOCATION, method, "the system has no memory left");
    } catch (const std::exception& e) {
        error(nvinfer1::ErrorCode::kINTERNAL_ERROR, method, e.what());
    } catch (...) {
        error(nvinfer1::ErrorCode::kUNSPECIFIED_ERROR, method, "an object of the caller threw");
    }
}

} // namespace ingot::api
