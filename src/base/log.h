// SPDX-License-Identifier: Apache-2.0
// Log lines go to one replaceable sink; the default prints warnings and errors to stderr. Logging
// never throws: destructors and threads do it.
#pragma once

#include "base/text.h"

#include <new>
#include <string_view>

namespace ingot {

enum class LogLevel { Error, Warning, Info, Verbose };
std::string_view name(LogLevel level);

/// May throw std::bad_alloc: that line is lost.
using LogSink = void (*)(void* context, LogLevel level, std::string_view message);
/// Replaces the sink for this process; thread safe; nullptr restores the default.
void set_log_sink(LogSink sink, void* context, LogLevel most_verbose);
bool log_enabled(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view message) noexcept;

template <class... Args>
void log(LogLevel level, const Args&... args) noexcept {
    if (!log_enabled(level)) {
        return;
    }
    try {
        log_line(level, str(args...));
    } catch (const std::bad_alloc&) {
        log_line(level, "a message is lost: there is no memory for it");
    }
}

} // namespace ingot
