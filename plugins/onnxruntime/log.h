// SPDX-License-Identifier: Apache-2.0
// Messages to the application: ONNX Runtime's logger, and an adapter for Ingot's API.
#pragma once

#include "NvInferRuntimeBase.h"
#include "plugins/onnxruntime/host.h"

#include <mutex>
#include <string>

namespace ingot::ort {

/// Writes to a logger of the host, which must outlive this. Cheap to copy; thread safe.
class Log {
public:
    Log(const Host& host, const OrtLogger* logger) : host_(host), logger_(logger) {}
    /// Whether a message of this level would be written.
    bool wants(OrtLoggingLevel level) const noexcept;
    void write(OrtLoggingLevel level, const std::string& text) const noexcept;
    void info(const std::string& text) const noexcept { write(ORT_LOGGING_LEVEL_INFO, text); }
    void warning(const std::string& text) const noexcept { write(ORT_LOGGING_LEVEL_WARNING, text); }

private:
    Host host_;
    const OrtLogger* logger_;
};

/// The logger of Ingot's objects. Keeps their errors for take_errors(), because their methods only
/// return failure. Thread safe.
class ApiLogger final : public nvinfer1::ILogger {
public:
    /// `verbose`: the API's information is logged as information; else as verbose.
    ApiLogger(Log log, bool verbose) : log_(log), verbose_(verbose) {}
    void log(Severity severity, const char* message) noexcept override;
    /// The errors since the last call, line by line; `otherwise` without any.
    std::string take_errors(const char* otherwise) noexcept;

private:
    Log log_;
    bool verbose_;
    std::mutex mutex_;
    std::string errors_;
};

} // namespace ingot::ort
