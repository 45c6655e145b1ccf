// SPDX-License-Identifier: Apache-2.0
// The one exception type of the compile side, and the checks for programmer errors (ADR 0001).
#pragma once

#include "base/text.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

enum class ErrorCode {
    InvalidArgument, // the caller's mistake: option, shape, name
    InvalidModel,    // malformed or inconsistent ONNX
    InvalidEngine,   // malformed, damaged or incompatible engine file
    Unsupported,     // well-formed, but outside what Ingot does
    Io,              // the operating system refused
    OutOfMemory,
    Interrupted, // Ctrl-C or a time limit
    Device,      // the GPU or its driver failed
    Internal,    // a bug in Ingot
};
std::string_view name(ErrorCode c);

/// The subject of an Unsupported error: what would have to be different.
enum class RefusalKind {
    None,      // no refusal, or nothing below
    Operator,  // the operation as a whole, or this use of it
    Attribute, // an attribute's value
    Input,     // an operand or result that is given or left out, or its value
    DataType,  // an element type
    Size,      // a rank, or the size of an axis
    Dynamic,   // a size or value that has to be known before the run
};
std::string_view name(RefusalKind k);

/// A failure, described so that a user can act on it. `trail` grows outwards: each layer that knows
/// where the failure happened adds one line. what() is "outer: inner: message".
class Error : public std::exception {
public:
    Error(ErrorCode code, std::string message, RefusalKind refusal = RefusalKind::None);
    ErrorCode code() const { return code_; }
    RefusalKind refusal() const { return refusal_; }
    const std::string& message() const { return message_; }
    /// Innermost first.
    const std::vector<std::string>& trail() const { return trail_; }
    /// Adds where this happened, e.g. "node 'conv3' (Conv, opset 13)"; returns *this for rethrow.
    Error& at(std::string place);
    const char* what() const noexcept override { return text_.c_str(); }

private:
    ErrorCode code_;
    RefusalKind refusal_;
    std::string message_;
    std::vector<std::string> trail_;
    std::string text_;
};

/// Throws Error with the arguments joined as `str` joins them.
template <class... Args>
[[noreturn]] void fail(ErrorCode code, const Args&... args) {
    throw Error(code, str(args...));
}

/// Throws Unsupported.
template <class... Args>
[[noreturn]] void refuse(RefusalKind kind, const Args&... args) {
    throw Error(ErrorCode::Unsupported, str(args...), kind);
}

/// Throws unless the condition holds: for facts about input, never for bugs.
template <class... Args>
void require(bool condition, ErrorCode code, const Args&... args) {
    if (!condition) [[unlikely]] {
        fail(code, args...);
    }
}

/// Runs f; an Error that leaves it carries `place()` in its trail.
template <class Place, class F>
decltype(auto) with_place(Place&& place, F&& f) {
    try {
        return std::forward<F>(f)();
    } catch (Error& e) {
        e.at(place());
        throw;
    }
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view message);

} // namespace ingot

/// Aborts with a message in every build when `cond` is false: for bugs in Ingot, never for input.
#define CHECK(cond, ...)                                                                           \
    (static_cast<bool>(cond)                                                                       \
         ? void(0)                                                                                 \
         : ::ingot::check_failed(#cond, __FILE__, __LINE__, ::ingot::str(__VA_ARGS__)))
