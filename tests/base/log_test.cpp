// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ingot {
namespace {

class Log : public testing::Test {
protected:
    ~Log() override { set_log_sink(nullptr, nullptr, LogLevel::Warning); }
    static void keep(void* context, LogLevel level, std::string_view message) {
        static_cast<std::vector<std::string>*>(context)->push_back(str(level, ": ", message));
    }
    std::vector<std::string> lines_;
};

TEST_F(Log, the_sink_gets_what_its_level_asks_for) {
    set_log_sink(keep, &lines_, LogLevel::Info);
    log(LogLevel::Error, "a ", 1);
    log(LogLevel::Info, "b");
    log(LogLevel::Verbose, "never");
    EXPECT_EQ(lines_, (std::vector<std::string>{"error: a 1", "info: b"}));
    EXPECT_TRUE(log_enabled(LogLevel::Info));
    EXPECT_FALSE(log_enabled(LogLevel::Verbose));
}

TEST_F(Log, the_default_prints_warnings_to_stderr) {
    set_log_sink(nullptr, nullptr, LogLevel::Warning);
    testing::internal::CaptureStderr();
    log(LogLevel::Warning, "careful");
    log(LogLevel::Info, "quiet");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "[warning] careful\n");
}

TEST_F(Log, lines_of_many_threads_stay_whole) {
    set_log_sink(keep, &lines_, LogLevel::Info);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 100; ++i) {
                log(LogLevel::Info, "line");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(lines_, std::vector<std::string>(400, "info: line"));
}

} // namespace
} // namespace ingot
