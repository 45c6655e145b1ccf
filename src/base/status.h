// SPDX-License-Identifier: Apache-2.0
// Status: the outcome of run-side calls, which neither throw nor allocate (ADR 0001).
#pragma once

#include "base/error.h"

namespace ingot {

/// A code and a static text; success has neither. The object that failed keeps details that need
/// memory (names, shapes).
class [[nodiscard]] Status {
public:
    constexpr Status() = default;
    /// `text` must have static lifetime (a literal).
    constexpr Status(ErrorCode code, const char* text) : code_(code), text_(text) {}
    constexpr bool ok() const { return text_ == nullptr; }
    constexpr ErrorCode code() const { return code_; }
    constexpr const char* text() const { return text_ == nullptr ? "" : text_; }

private:
    ErrorCode code_ = ErrorCode::Internal;
    const char* text_ = nullptr;
};

} // namespace ingot
