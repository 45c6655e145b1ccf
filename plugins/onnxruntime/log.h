// SPDX-License-Identifier: Apache-2.0
// Messages to the application: ONNX Runtime's logger, and an adapter for Ingot's API.
#pragma once

#include "plugins/common/keeping_logger.h"
#include "plugins/onnxruntime/host.h"

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

/// The logger of Ingot's objects. Thread safe.
class ApiLogger final : public KeepingLogger {
public:
    /// `verbose`: the API's information is logged as information; else as verbose.
    ApiLogger(Log log, bool verbose) : log_(log), verbose_(verbose) {}

private:
    void write(Severity severity, const char* message) override;

    Log log_;
    bool verbose_;
};

} // namespace ingot::ort
