// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/keeping_logger.h"

#include <gtest/gtest.h>

#include <barrier>

namespace ingot::ort {
namespace {

class Errors final : public KeepingLogger {
protected:
    void write(Severity, const char*) override {}
};

TEST(KeepingLogger, CallsBesideEachOtherTakeTheirOwnErrors) {
    Errors logger;
    constexpr int count = 4;
    std::barrier all_have_failed(count);
    std::vector<std::string> taken(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            std::string text = "error " + std::to_string(i);
            logger.log(Errors::Severity::kERROR, text.c_str());
            logger.log(Errors::Severity::kERROR, "and why");
            all_have_failed.arrive_and_wait();
            taken[static_cast<size_t>(i)] = logger.take_errors("none");
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(taken[static_cast<size_t>(i)], "error " + std::to_string(i) + "\nand why");
    }
    EXPECT_EQ(logger.take_errors("none"), "none");
}

TEST(KeepingLogger, ErrorsOfHelpersAreTakenByACallWithoutItsOwn) {
    Errors logger;
    std::thread([&] { logger.log(Errors::Severity::kERROR, "of a helper"); }).join();
    EXPECT_EQ(logger.take_errors("none"), "of a helper");
    EXPECT_EQ(logger.take_errors("none"), "none");
}

TEST(KeepingLogger, KeepsNoMoreThanItsLimit) {
    Errors logger;
    std::string text(1000, 'x');
    for (int i = 0; i < 1000; ++i) {
        logger.log(Errors::Severity::kERROR, text.c_str());
    }
    EXPECT_LT(logger.take_errors("none").size(), 68'000U);
    logger.log(Errors::Severity::kERROR, "again");
    EXPECT_EQ(logger.take_errors("none"), "again");
}

} // namespace
} // namespace ingot::ort
