// SPDX-License-Identifier: Apache-2.0
// The server that loaded this library: its errors become exceptions on this side, and exceptions
// here become its errors. An exception across the interface would end the server.
#pragma once

#include "base/error.h"
#include "plugins/common/keeping_logger.h"
#include "plugins/triton/abi.h"

#include <new>
#include <string>
#include <vector>

namespace ingot::triton {

/// Takes an error of the server over. Errors: that of its code, with its text.
void check(TRITONSERVER_Error* error);
/// The same where nothing can be done about it: a failed answer to a client that is gone.
void ignore(TRITONSERVER_Error* error) noexcept;

/// A new error for the server, which takes it over where it is returned.
TRITONSERVER_Error* server_error(TRITONSERVER_Error_Code code, const char* text) noexcept;
TRITONSERVER_Error_Code server_code(ErrorCode code) noexcept;

/// An error of the server's with a code that ours have no word for.
class ServerError : public std::exception {
public:
    ServerError(TRITONSERVER_Error_Code code, std::string text)
        : code_(code), text_(std::move(text)) {}
    TRITONSERVER_Error_Code code() const { return code_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    TRITONSERVER_Error_Code code_;
    std::string text_;
};

/// Runs f on behalf of the server: what it throws becomes the error that is returned.
template <class F>
TRITONSERVER_Error* guard(F&& f) noexcept {
    try {
        f();
        return nullptr;
    } catch (const ServerError& e) {
        return server_error(e.code(), e.what());
    } catch (const Error& e) {
        return server_error(server_code(e.code()), e.what());
    } catch (const std::bad_alloc&) {
        return server_error(TRITONSERVER_ERROR_UNAVAILABLE, "out of host memory");
    } catch (const std::exception& e) {
        return server_error(TRITONSERVER_ERROR_INTERNAL, e.what());
    } catch (...) {
        return server_error(TRITONSERVER_ERROR_INTERNAL, "an exception of unknown type");
    }
}

/// The result of a getter of the server's.
template <class Out, class... Params, class... Args>
Out get_from(TRITONSERVER_Error* (*function)(Params...), Args... args) {
    Out out{};
    check(function(args..., &out));
    return out;
}

/// The text of a server's message. The server owns a backend's configuration; we own a model's.
std::string read_json(TRITONSERVER_Message* message);
std::string take_json(TRITONSERVER_Message* message);

void log(TRITONSERVER_LogLevel level, const std::string& text) noexcept;

/// Ingot's messages in the server's log, each with whom it is about. Safe from any thread.
class ServerLogger final : public KeepingLogger {
public:
    explicit ServerLogger(std::string subject) : subject_(std::move(subject)) {}

private:
    void write(Severity severity, const char* message) override;

    std::string subject_;
};

/// Errors of one context, which others must not see. One thread at a time.
class ErrorList final : public nvinfer1::IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(errors_.size()); }
    nvinfer1::ErrorCode getErrorCode(int32_t i) const noexcept override;
    ErrorDesc getErrorDesc(int32_t i) const noexcept override;
    bool hasOverflowed() const noexcept override { return overflowed_; }
    void clear() noexcept override;
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc text) noexcept override;
    RefCount incRefCount() noexcept override { return ++references_; }
    RefCount decRefCount() noexcept override { return --references_; }
    /// Throws what was recorded, as an error of its code, and forgets it.
    [[noreturn]] void raise(const char* otherwise);

private:
    struct Item {
        nvinfer1::ErrorCode code;
        std::string text;
    };
    std::vector<Item> errors_;
    bool overflowed_ = false;
    RefCount references_ = 0;
};

} // namespace ingot::triton
