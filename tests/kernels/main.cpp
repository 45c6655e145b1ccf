// SPDX-License-Identifier: Apache-2.0
// The families' tests in parts, one a source file: --part=conv runs the tests of conv_test.cpp
// alone.
#include "kernels/part.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <string_view>

namespace {

bool stands_in(const testing::TestInfo& test, const std::string& part) {
    std::string_view file = test.file() == nullptr ? "" : test.file();
    return file.ends_with("/" + part + "_test.cpp");
}

/// GoogleTest's filter for the tests of a part; "" where there are none.
std::string filter_of(const std::string& part) {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    std::string filter;
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const testing::TestSuite& suite = *all.GetTestSuite(s);
        for (int t = 0; t < suite.total_test_count(); ++t) {
            const testing::TestInfo& test = *suite.GetTestInfo(t);
            if (stands_in(test, part)) {
                filter += std::string(filter.empty() ? "" : ":") + test.test_suite_name() + '.' +
                          test.name();
            }
        }
    }
    return filter;
}

std::string part_of_run;

/// A report for a folder is named after the part, so that parts do not overwrite each other's.
void name_report(const std::string& part) {
    std::string output = GTEST_FLAG_GET(output);
    if (output.ends_with('/')) {
        std::string kind = output.substr(0, output.find(':'));
        GTEST_FLAG_SET(output, output + "test_kernels." + part + '.' + kind);
    }
}

} // namespace

const std::string& ingot::test::running_part() {
    return part_of_run;
}

int main(int argc, char** argv) {
    constexpr std::string_view option = "--part=";
    for (int i = 1; i < argc; ++i) { // GoogleTest takes the report's name when it starts
        if (std::string_view argument = argv[i]; argument.starts_with(option)) {
            name_report(std::string(argument.substr(option.size())));
        }
    }
    testing::InitGoogleTest(&argc, argv);
    for (int i = 1; i < argc; ++i) {
        std::string_view argument = argv[i];
        bool names = argument.starts_with(option);
        std::string filter = names ? filter_of(std::string(argument.substr(option.size()))) : "";
        if (filter.empty()) {
            std::cerr << argument
                      << ": expected --part=NAME, where tests/kernels/NAME_test.cpp has "
                      << "tests\n";
            return 2;
        }
        GTEST_FLAG_SET(filter, filter);
        part_of_run = argument.substr(option.size());
    }
    return RUN_ALL_TESTS();
}
