// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

namespace ingot {
namespace {

TEST(Trace, RecordsSpansWithPhaseDetailAndOrder) {
    start_trace();
    {
        TraceSpan outer("outer", "of all");
        TraceSpan inner("inner");
    }
    std::vector<TraceEvent> events = end_trace();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].phase, "outer");
    EXPECT_EQ(events[0].detail, "of all");
    EXPECT_EQ(events[1].phase, "inner");
    EXPECT_LE(events[0].start_ms, events[1].start_ms);
    EXPECT_LE(events[1].end_ms, events[0].end_ms);
    EXPECT_LE(events[1].start_ms, events[1].end_ms);
    EXPECT_GE(events[0].start_ms, 0);
}

TEST(Trace, SpansOfOtherRecordingsAreLeftOut) {
    { TraceSpan before("before"); }
    auto early = std::make_unique<TraceSpan>("begun before");
    start_trace();
    early.reset();
    auto late = std::make_unique<TraceSpan>("still open");
    EXPECT_TRUE(end_trace().empty());
    start_trace();
    late.reset();
    EXPECT_TRUE(end_trace().empty());
}

TEST(Trace, ThreadsHaveNumbersOfTheirOwn) {
    start_trace();
    { TraceSpan here("here"); }
    std::thread([] { TraceSpan there("there"); }).join();
    std::vector<TraceEvent> events = end_trace();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].thread, 0);
    EXPECT_EQ(events[1].thread, 1);
}

TEST(Trace, AnExceptionEndsASpan) {
    start_trace();
    EXPECT_THROW(
        {
            TraceSpan span("failing");
            throw std::runtime_error("x");
        },
        std::runtime_error);
    EXPECT_EQ(end_trace().size(), 1U);
}

} // namespace
} // namespace ingot
