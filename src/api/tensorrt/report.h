// SPDX-License-Identifier: Apache-2.0
// Report: the error channel of an object of the public API, and its exception barrier. Every method
// of the API that can fail is written
//
//     return report_.guard("IRuntime::deserializeCudaEngine", nullptr, [&] { ... });
#pragma once

#include "NvInferRuntime.h"
#include "base/error.h"

#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <type_traits>

namespace ingot::api {

nvinfer1::ErrorCode api_code(ErrorCode c) noexcept;

/// Reports to the recorder, else the logger, else standard error. Children copy their parent's
/// report. Recorders are reference counted. Thread safe, except set_recorder and assignment.
class Report {
public:
    explicit Report(nvinfer1::ILogger* logger = nullptr,
                    nvinfer1::IErrorRecorder* recorder = nullptr) noexcept;
    Report(const Report& o) noexcept;
    Report& operator=(const Report& o) noexcept;
    ~Report();

    nvinfer1::ILogger* logger() const noexcept { return logger_; }
    nvinfer1::IErrorRecorder* recorder() const noexcept { return recorder_; }
    /// Releases the old recorder and holds the new one; null for none.
    void set_recorder(nvinfer1::IErrorRecorder* recorder) noexcept;

    /// Reports "<method>: <text>"; cut to the recorder's length, whole to the logger. Without
    /// memory for it, only its beginning.
    void error(nvinfer1::ErrorCode code, std::string_view method,
               std::string_view text) const noexcept;
    void log(nvinfer1::ILogger::Severity severity, std::string_view text) const noexcept;

    /// The result of f; `failure` when f throws, after reporting the error.
    template <class R, class F>
    R guard(std::string_view method, R failure, const F& f) const noexcept {
        try {
            return f();
        } catch (...) {
            report_current(method);
            return failure;
        }
    }
    /// For methods without a result.
    template <class F>
    void guard(std::string_view method, const F& f) const noexcept {
        try {
            f();
        } catch (...) {
            report_current(method);
        }
    }

private:
    void report_current(std::string_view method) const noexcept;
    void write(nvinfer1::ILogger::Severity severity, const char* line) const noexcept;

    nvinfer1::ILogger* logger_;
    nvinfer1::IErrorRecorder* recorder_;
};

} // namespace ingot::api
