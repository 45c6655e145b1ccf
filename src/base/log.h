// SPDX-License-Identifier: Apache-2.0
// Log lines go to one replaceable sink; the default prints warnings and errors to stderr.
#pragma once

#include "base/text.h"

#include <string_view>

namespace ingot {

enum class LogLevel { Error, Warning, Info, Verbose };
std::string_view name(LogLevel level);

using LogSink = void (*)(void* context, LogLevel level, std::string_view message);
/// Replaces the sink for this process; thread safe; nullptr restores the default.
void set_log_sink(LogSink sink, void* context, LogLevel most_verbose);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view message);

template <class... Args>
void log(LogLevel level, const Args&... args) {
    if (log_enabled(level)) {
        log_line(level, str(args...));
    }
}

} // namespace ingot
