// SPDX-License-Identifier: Apache-2.0
// A logger for clients of the API that report errors themselves: methods of the API only say that
// they failed, and the reason goes to the logger.
#pragma once

#include "NvInferRuntimeBase.h"
#include "base/error.h"

#include <mutex>
#include <string>

namespace ingot {

/// Keeps errors, up to 64 KiB of text, for take_errors(), and hands everything else to write().
/// Thread safe where write() is.
class KeepingLogger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char* message) noexcept final {
        try {
            if (severity > Severity::kERROR) {
                write(severity, message);
                return;
            }
            std::lock_guard<std::mutex> lock(mutex_);
            if (errors_.size() < 1U << 16U) {
                errors_ += errors_.empty() ? "" : "\n";
                errors_ += message;
            }
        } catch (...) { // without memory the message is lost
        }
    }

    /// The errors since the last call, one a line; `otherwise` if there are none. Empty without
    /// memory for them.
    std::string take_errors(const char* otherwise) noexcept {
        try {
            std::lock_guard<std::mutex> lock(mutex_);
            std::string taken;
            taken.swap(errors_);
            return taken.empty() ? std::string(otherwise) : taken;
        } catch (...) {
            return {};
        }
    }

    /// Throws unless a call of the API did what it was asked: with the errors that it logged,
    /// `otherwise` if there are none.
    void require_done(bool done, ErrorCode code, const char* otherwise) {
        if (!done) {
            fail(code, take_errors(otherwise));
        }
    }

protected:
    /// A message that is no error. May throw; the message is lost then.
    virtual void write(Severity severity, const char* message) = 0;

private:
    std::mutex mutex_;
    std::string errors_;
};

} // namespace ingot
