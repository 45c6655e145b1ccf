// SPDX-License-Identifier: Apache-2.0
// Compile options of a backend from the options of commands.
#include "../tools/ingot/common.h"
#include "base/error.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

TEST(CommandOptions, ThePriorityOfRuns) {
    EXPECT_EQ(tool::compile_options(Options()).priority, RunPriority::Normal);
    for (auto [text, priority] : {std::pair("low", RunPriority::Low),
                                  {"normal", RunPriority::Normal},
                                  {"high", RunPriority::High}}) {
        for (unsigned command : {command::Run, command::Bench, command::Compare, command::Trtexec,
                                 command::Calibrate}) {
            Options o;
            const OptionRow* row = find_option(command, "--priority");
            ASSERT_NE(row, nullptr) << command;
            set_option(o, *row, "--priority", text);
            EXPECT_EQ(tool::compile_options(o).priority, priority) << text;
        }
    }
    Options o;
    try {
        set_option(o, *find_option(command::Run, "--priority"), "--priority", "urgent");
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.message(), "--priority=urgent: expected low, normal or high");
    }
}

} // namespace
} // namespace ingot::test
