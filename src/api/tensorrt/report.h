// SPDX-License-Identifier: Apache-2.0
// Report: where an object of the public API says what went wrong; and the wall behind which nothing
// throws. Every method of the API that can fail is written
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

/// The recorder when there is one, else the logger, else standard error. Children copy their
/// parent's. Recorders are counted. Thread safe, except set_recorder and assignment.
class Report {
public:
    explicit Report(nvinfer1::ILogger* logger = nullptr,
                    nvinfer1::IErrorRecorder* recorder = nullptr) noexcept;
    Report(const Report& o) noexcept;
    Report& operator=(const Report& o) noexcept;
    ~Report();

    nvinfer1::ILogger* logger() const noexcept { return logger_; }
    nvinfer1::IErrorRecorder* recorder() const noexcept { return recorder_; }
    /// Lets the old recorder go and holds the new one; null for none.
    void set_recorder(nvinfer1::IErrorRecorder* recorder) noexcept;

    /// "<method>: <text>"; cut to the recorder's length, whole to the logger. Where there is no
    /// memory for that, its beginning.
    void error(nvinfer1::ErrorCode code, std::string_view method,
               std::string_view text) const noexcept;
    void log(nvinfer1::ILogger::Severity severity, std::string_view text) const noexcept;

    /// The result of f; `failure` when it throws, which is reported.
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
