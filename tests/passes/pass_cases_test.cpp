// SPDX-License-Identifier: Apache-2.0
// The check of passes' cases: its messages for cases that do not hold, and the goldens it writes.
#include "base/text.h"
#include "passes/pass_cases.h"
#include "passes/passes.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot::test {
namespace {

constexpr const char* with_dead_code =
    "graph main(%x: f32[N]) {\n"
    "  %1 = map(%x) {body=\"0=in(0):f32; 1=exp(0):f32\"} : f32[N]\n"
    "  return %x as y\n"
    "}\n";
constexpr const char* without = "graph main(%x: f32[N]) {\n"
                                "  return %x as y\n"
                                "}\n";

/// A folder with cases of dead_code; goldens are written where the test says so alone.
class PassCases : public testing::Test {
protected:
    void SetUp() override {
        const char* given = std::getenv("INGOT_WRITE_GOLDENS");
        given_ = given != nullptr ? given : "";
        unsetenv("INGOT_WRITE_GOLDENS");
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override {
        setenv("INGOT_WRITE_GOLDENS", given_.c_str(), 1);
        std::filesystem::remove_all(folder_);
    }

    /// The failures that the check reports for one case.
    std::string failures(const std::string& title, const std::string& before,
                         const std::string& after) {
        std::ofstream(folder_ / "dead_code.case") << "=== " << title << "\n"
                                                  << before << "---\n"
                                                  << after;
        return failures_of([this] {
            check_pass_cases(folder_, "dead_code", true,
                             [](const PassCase&) -> const Pass& { return passes::dead_code; });
        });
    }

    /// The text behind `---` now.
    std::string after() { return read_pass_cases(folder_, "dead_code").at(0).after; }

    template <class F>
    static std::string failures_of(F f) {
        testing::TestPartResultArray results;
        {
            testing::ScopedFakeTestPartResultReporter reporter(
                testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
            f();
        }
        std::ostringstream out;
        for (int i = 0; i < results.size(); ++i) {
            std::string message = results.GetTestPartResult(i).message();
            out << message.substr(0, message.find("\nGoogle Test trace:"));
        }
        return out.str();
    }

    std::filesystem::path folder_ =
        std::filesystem::path(testing::TempDir()) / str("pass_cases_", getpid());
    std::string given_;
};

TEST_F(PassCases, HoldAsWritten) {
    EXPECT_EQ(failures("goes", with_dead_code, without), "");
    EXPECT_EQ(failures("not: none", without, "unchanged\n"), "");
}

TEST_F(PassCases, AnEmptyOneSaysHowItIsWritten) {
    std::string told = failures("goes", with_dead_code, "");
    EXPECT_NE(told.find("/dead_code.case, 'goes': nothing stands behind '---': "
                        "INGOT_WRITE_GOLDENS=1 writes it"),
              std::string::npos)
        << told;
}

TEST_F(PassCases, ADifferentOneShowsTheLines) {
    std::string told = failures("goes", with_dead_code, with_dead_code);
    EXPECT_NE(told.find("/dead_code.case, 'goes': the graph after is another one; where it is "
                        "right, INGOT_WRITE_GOLDENS=1 writes it\n"
                        "from line 2, '-' expected, '+' got:\n"
                        "-  %1 = map(%x) {body=\"0=in(0):f32; 1=exp(0):f32\"} : f32[N]\n"),
              std::string::npos)
        << told;
}

TEST_F(PassCases, AMistakeSaysWhereItIs) {
    std::string told = failures("goes", "grph\n", without);
    EXPECT_NE(told.find("/dead_code.case, 'goes': the graph before: "), std::string::npos) << told;
    told = failures("goes", with_dead_code, "grph\n");
    EXPECT_NE(told.find("/dead_code.case, 'goes': the graph after: "), std::string::npos) << told;
}

TEST_F(PassCases, NearMissesAloneStayUnchanged) {
    std::string told = failures("not: goes", with_dead_code, without);
    EXPECT_NE(told.find("the pass changes a near-miss, which must stay 'unchanged'"),
              std::string::npos)
        << told;
    told = failures("none", without, "unchanged\n");
    EXPECT_NE(told.find("it stays 'unchanged', so its title begins with 'not: '"),
              std::string::npos)
        << told;
}

TEST_F(PassCases, AreWrittenButNotIntoNearMisses) {
    setenv("INGOT_WRITE_GOLDENS", "1", 1);
    EXPECT_EQ(failures("goes", with_dead_code, ""), "");
    EXPECT_EQ(after(), without);
    EXPECT_EQ(failures("not: none", without, ""), "");
    EXPECT_EQ(after(), "unchanged\n");
    EXPECT_NE(failures("not: goes", with_dead_code, "unchanged\n"), "");
    EXPECT_EQ(after(), "unchanged\n");
    EXPECT_NE(failures("none", without, ""), "");
}

// A pass that says `handles_bodies` and does not is found.
TEST_F(PassCases, SeesPassesThatLeaveBranchesOut) {
    std::ofstream(folder_ / "dead_code.case") << "=== goes\n"
                                              << with_dead_code << "---\n"
                                              << without;
    Pass outside = passes::dead_code;
    outside.run = [](const Graph& g, const PassOptions&) {
        return g.nodes().back().is(if_def) ? g : dead_code(g);
    };
    auto in_branches = [&] {
        return failures_of([&] {
            check_cases_in_branches(folder_, "dead_code",
                                    [&](const PassCase&) -> const Pass& { return outside; });
        });
    };
    EXPECT_EQ(in_branches(), "");
    outside.handles_bodies = true;
    EXPECT_NE(in_branches().find("'goes': the pass does not do the same in a branch of an 'if'"),
              std::string::npos);
}

} // namespace
} // namespace ingot::test
