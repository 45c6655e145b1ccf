// SPDX-License-Identifier: Apache-2.0
// Spans of work of this process, for a picture of a cold start. While nothing is recorded, a span
// costs one load.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Milliseconds since start_trace().
struct TraceEvent {
    std::string phase;  // "read", "compile", ...
    std::string detail; // of what; may be empty
    int thread = 0;     // numbered from 0 in the order in which they record
    double start_ms = 0;
    double end_ms = 0;
};

/// Begins to record, without earlier events. Thread safe, as all of these.
void start_trace();
/// Ends recording; the events by start. Spans that are still open are left out.
std::vector<TraceEvent> end_trace();

/// Records its lifetime, if recording began before it and lasts until its end. An exception ends it
/// too.
class TraceSpan {
public:
    explicit TraceSpan(std::string_view phase, std::string_view detail = {}) noexcept;
    ~TraceSpan();
    TraceSpan(const TraceSpan&) = delete;
    TraceSpan& operator=(const TraceSpan&) = delete;

private:
    std::string_view phase_; // a literal
    std::string detail_;
    uint64_t recording_ = 0; // 0: none
    double start_ms_ = 0;
};

} // namespace ingot
