// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include "base/printable.h"

#include <cstdio>
#include <cstdlib>

namespace ingot {

std::string_view name(ErrorCode c) {
    switch (c) {
    case ErrorCode::InvalidArgument:
        return "invalid argument";
    case ErrorCode::InvalidModel:
        return "invalid model";
    case ErrorCode::InvalidEngine:
        return "invalid engine";
    case ErrorCode::Unsupported:
        return "unsupported";
    case ErrorCode::Io:
        return "input/output";
    case ErrorCode::OutOfMemory:
        return "out of memory";
    case ErrorCode::Interrupted:
        return "interrupted";
    case ErrorCode::Device:
        return "device error";
    case ErrorCode::Internal:
        return "internal error";
    }
    return "unknown";
}

std::string_view name(RefusalKind k) {
    switch (k) {
    case RefusalKind::None:
        return "none";
    case RefusalKind::Operator:
        return "operator";
    case RefusalKind::Attribute:
        return "attribute";
    case RefusalKind::Input:
        return "input";
    case RefusalKind::DataType:
        return "data type";
    case RefusalKind::Size:
        return "size";
    case RefusalKind::Dynamic:
        return "dynamic";
    }
    return "unknown";
}

// Most callers give up the string that they built: by value, although it is copied here.
// NOLINTBEGIN(performance-unnecessary-value-param)
Error::Error(ErrorCode code, std::string message, RefusalKind refusal)
    : code_(code), refusal_(refusal), message_(printable(message)), text_(message_) {}

Error& Error::at(std::string place) {
    trail_.push_back(printable(place));
    text_ = str(trail_.back(), ": ", text_);
    return *this;
}
// NOLINTEND(performance-unnecessary-value-param)

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
    std::string text = str("ingot: internal error: ", message, message.empty() ? "" : " ",
                           "(check '", condition, "' failed at ", file, ":", line, ")\n");
    std::fputs(text.c_str(), stderr);
    std::abort();
}

} // namespace ingot
