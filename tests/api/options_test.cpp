// SPDX-License-Identifier: Apache-2.0
#include "api/options.h"
#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "base/error.h"
#include "error_of.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot {
namespace {

std::string option_error(std::string_view name, std::string_view text) {
    return test::error_of([&] {
        Options o;
        set_option(o, *find_option(command::Trtexec, name), name, text);
    });
}

TEST(Options, AreSetByTheirRows) {
    Options o;
    auto set = [&](std::string_view name, std::string_view text) {
        set_option(o, *find_option(command::Trtexec, name), name, text);
    };
    set("--fp16", "");
    set("--iterations", "37");
    set("--duration", "0.5");
    set("--onnx", "a=b.onnx");
    set("--disablePass", "one");
    set("--disablePass", "two");
    set("--profilingVerbosity", "detailed");
    EXPECT_TRUE(o.build().fp16);
    EXPECT_EQ(o.measure().iterations, 37);
    EXPECT_EQ(o.measure().duration, 0.5);
    EXPECT_EQ(o.common().onnx, "a=b.onnx");
    EXPECT_EQ(o.build().disable_passes, (List{"one", "two"}));
    EXPECT_EQ(o.build().profiling_verbosity, "detailed");
    set("--fp16", "0");
    EXPECT_FALSE(o.build().fp16);
}

TEST(Options, BadValues) {
    EXPECT_EQ(option_error("--fp16", "yes"), "--fp16=yes: expected no value: this is a flag");
    EXPECT_EQ(option_error("--iterations", "1.5"), "--iterations=1.5: expected a whole number");
    EXPECT_EQ(option_error("--iterations", ""), "--iterations=: expected a whole number");
    EXPECT_EQ(option_error("--iterations", "99999999999999999999"),
              "--iterations=99999999999999999999: expected a whole number");
    EXPECT_EQ(option_error("--duration", "1s"), "--duration=1s: expected a number");
    EXPECT_EQ(option_error("--accuracyAlgorithm", "l3"),
              "--accuracyAlgorithm=l3: expected l0, l1, l2, lInf or cos");
    EXPECT_THROW(check_value("N", "--x", "a"), Error);
    EXPECT_THROW(check_value("X", "--x", "a"), Error);
    EXPECT_THROW(check_value("a|b", "--x", "c"), Error);
    EXPECT_THROW(check_value("", "--x", "c"), Error);
    EXPECT_NO_THROW(check_value("FILE", "--x", "anything"));
}

TEST(Options, RangesAreSaidInTheRows) {
    EXPECT_EQ(option_error("--avgRuns", "0"), "--avgRuns=0: expected 1 or more");
    EXPECT_EQ(option_error("--avgRuns", "x"), "--avgRuns=x: expected a whole number");
    EXPECT_EQ(option_error("--infStreams", "257"), "--infStreams=257: expected 1 to 256");
    EXPECT_EQ(option_error("--persistentCacheRatio", "1.5"),
              "--persistentCacheRatio=1.5: expected 0 to 1");
    EXPECT_EQ(option_error("--duration", "-2"), "--duration=-2: expected 0 or more, or -1");
    EXPECT_EQ(option_error("--duration", "nan"), "--duration=nan: expected 0 or more, or -1");
    EXPECT_EQ(option_error("--duration", "-1"), "");
    EXPECT_EQ(option_error("--percentile", "50,101"), "--percentile=50,101: expected 0 to 100");
    EXPECT_EQ(option_error("--percentile", "50,x"),
              "--percentile=50,x: expected numbers joined by commas");
    EXPECT_EQ(option_error("--percentile", "0,100"), "");
}

TEST(Options, RefusedValuesChangeNothing) {
    Options o;
    EXPECT_THROW(set_option(o, *find_option(command::Trtexec, "--infStreams"), "--infStreams", "0"),
                 Error);
    EXPECT_EQ(o.measure().streams, Options().measure().streams);
}

TEST(Options, ChangesAreSeenByRow) {
    Options o;
    for (const OptionRow& r : option_rows()) {
        EXPECT_FALSE(is_changed(o, r)) << r.field;
    }
    o.run().tune_budget = 7;
    o.build().static_plugins = {"a"};
    for (const OptionRow& r : option_rows()) {
        EXPECT_EQ(is_changed(o, r), r.field == "tune_budget" || r.field == "static_plugins")
            << r.field;
    }
}

/// A number has a range, or takes any; defaults lie inside.
TEST(Options, DefaultsAreInTheirRanges) {
    for (const OptionRow& r : option_rows()) {
        EXPECT_TRUE(!r.has_range() || r.type == "Int" || r.type == "Real" || r.type == "Text")
            << r.field;
        if (r.has_range()) {
            std::string standard(r.standard);
            std::erase(standard, '"');
            Options o;
            EXPECT_NO_THROW(set_option(o, r, r.field, standard)) << r.field;
        }
    }
}

TEST(Options, AreFoundInTheirCommandsOnly) {
    EXPECT_EQ(find_option(command::Trtexec, "--threads"), nullptr);
    EXPECT_EQ(find_option(command::Bench, "--threads")->field, "threads");
    EXPECT_EQ(find_option(command::Check, "--fp16"), nullptr);
    EXPECT_EQ(find_option(command::Trtexec, "--fp"), nullptr);
    EXPECT_EQ(find_ignored("--vc"), find_ignored("--versionCompatible"));
    EXPECT_EQ(find_ignored("--fp16"), nullptr);
}

TEST(Options, ANameMeansOneThingInACommand) {
    std::set<std::pair<unsigned, std::string>> seen;
    for (const OptionRow& r : option_rows()) {
        for (const std::string& n : split_names(r.names)) {
            for (unsigned bit = 1; bit != 0; bit <<= 1U) {
                if ((r.commands & bit) != 0) {
                    EXPECT_TRUE(seen.emplace(bit, n).second) << n << " of " << r.field;
                }
            }
        }
    }
    for (const IgnoredRow& r : ignored_rows()) {
        for (const std::string& n : split_names(r.names)) {
            EXPECT_TRUE(seen.emplace(command::Trtexec, n).second) << n;
        }
    }
}

} // namespace
} // namespace ingot
