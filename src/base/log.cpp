// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/printable.h"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace ingot {

namespace {

void print_to_stderr(void*, LogLevel level, std::string_view message) {
    std::string_view level_name = name(level);
    std::fprintf(stderr, "[%.*s] %.*s\n", static_cast<int>(level_name.size()), level_name.data(),
                 static_cast<int>(message.size()), message.data());
}

struct State {
    std::mutex mutex;
    LogSink sink = print_to_stderr;
    void* context = nullptr;
    std::atomic<LogLevel> most_verbose{LogLevel::Warning};
};

State& state() {
    static State s;
    return s;
}

} // namespace

std::string_view name(LogLevel level) {
    switch (level) {
    case LogLevel::Error:
        return "error";
    case LogLevel::Warning:
        return "warning";
    case LogLevel::Info:
        return "info";
    case LogLevel::Verbose:
        return "verbose";
    }
    return "unknown";
}

void set_log_sink(LogSink sink, void* context, LogLevel most_verbose) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    s.sink = sink == nullptr ? print_to_stderr : sink;
    s.context = context;
    s.most_verbose = most_verbose;
}

bool log_enabled(LogLevel level) noexcept {
    return level <= state().most_verbose.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view message) noexcept {
    State& s = state();
    std::lock_guard lock(s.mutex);
    try {
        s.sink(s.context, level, printable(message));
    } catch (const std::bad_alloc&) {
        std::fputs("[error] a log line is lost: there is no memory for it\n", stderr);
    }
}

} // namespace ingot
