// SPDX-License-Identifier: Apache-2.0
// A logger for clients of the API that report errors themselves: methods of the API only say that
// they failed, and the reason goes to the logger.
#pragma once

#include "NvInferRuntimeBase.h"
#include "base/error.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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
            if (bytes_ < most_bytes) {
                errors_.push_back({std::this_thread::get_id(), message});
                bytes_ += errors_.back().text.size();
            }
        } catch (...) { // without memory the message is lost
        }
    }

    /// This thread's errors since its last call, one a line. Calls that fail beside each other tell
    /// theirs apart so. Without any, those of all threads: a call may have work done by others.
    /// `otherwise` if there are none; empty without memory for them.
    std::string take_errors(const char* otherwise) noexcept {
        try {
            std::lock_guard<std::mutex> lock(mutex_);
            std::thread::id own = std::this_thread::get_id();
            auto is_own = [own](const Kept& e) { return e.thread == own; };
            bool has_own = std::any_of(errors_.begin(), errors_.end(), is_own);
            std::string taken;
            std::vector<Kept> left;
            bytes_ = 0;
            for (Kept& e : errors_) {
                if (has_own && !is_own(e)) {
                    bytes_ += e.text.size();
                    left.push_back(std::move(e));
                    continue;
                }
                taken += taken.empty() ? "" : "\n";
                taken += e.text;
            }
            errors_ = std::move(left);
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
    struct Kept {
        std::thread::id thread;
        std::string text;
    };
    static constexpr size_t most_bytes = 1U << 16U;

    std::mutex mutex_;
    std::vector<Kept> errors_;
    size_t bytes_ = 0; // of all texts
};

} // namespace ingot
