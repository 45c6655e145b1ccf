// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/pieces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace ingot {
namespace {

using std::chrono::milliseconds;

class Interrupt : public testing::Test {
protected:
    ~Interrupt() override {
        clear_interrupt();
        set_time_limit(milliseconds(0));
        for (int s : {SIGINT, SIGTERM, SIGHUP}) {
            std::signal(s, SIG_DFL);
        }
    }
};

std::string message_of_check() {
    try {
        check_interrupt();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Interrupted);
        return e.message();
    }
    return "";
}

TEST_F(Interrupt, a_request_holds_until_cleared) {
    EXPECT_EQ(message_of_check(), "");
    request_interrupt();
    EXPECT_NE(message_of_check().find("interrupted"), std::string::npos);
    EXPECT_NE(message_of_check(), "") << "it stays";
    clear_interrupt();
    EXPECT_EQ(message_of_check(), "");
}

TEST_F(Interrupt, a_request_reaches_other_threads) {
    request_interrupt();
    std::string message;
    std::thread([&] { message = message_of_check(); }).join();
    EXPECT_NE(message, "");
}

TEST_F(Interrupt, the_time_limit_names_itself) {
    set_time_limit(milliseconds(3600000));
    EXPECT_EQ(message_of_check(), "");
    set_time_limit(milliseconds(5));
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_NE(message_of_check().find("time limit of 5 ms"), std::string::npos);
    set_time_limit(milliseconds(0));
    EXPECT_EQ(message_of_check(), "");
}

TEST_F(Interrupt, the_first_signal_asks_to_stop) {
    for (int s : {SIGINT, SIGTERM, SIGHUP}) {
        handle_sigint();
        EXPECT_EQ(message_of_check(), "");
        std::raise(s);
        EXPECT_EQ(message_of_check(), "interrupted") << s;
        clear_interrupt();
    }
}

TEST_F(Interrupt, signals_that_are_ignored_stay_so) {
    std::signal(SIGHUP, SIG_IGN); // as nohup has it
    handle_sigint();
    std::raise(SIGHUP);
    EXPECT_EQ(message_of_check(), "");
    std::raise(SIGTERM);
    EXPECT_EQ(message_of_check(), "interrupted");
}

// Weights have gigabytes.
TEST_F(Interrupt, long_data_is_worked_on_in_pieces) {
    std::vector<std::byte> two(piece_bytes + 1, std::byte{7});
    std::span<const std::byte> one = std::span(two).first(piece_bytes);
    std::string path = testing::TempDir() + "interrupt_" + std::to_string(getpid());
    auto hash = [](auto data) { return xxh3_128(data); };
    auto sha = [](auto data) { return sha256(data); };
    auto write = [&](auto data) { AtomicFile(path).write(data); };
    auto message = [](auto f, auto data) -> std::string {
        try {
            f(data);
        } catch (const Error& e) {
            return e.message();
        }
        return "";
    };
    Hash128 whole = hash(two);
    HashStream parts(false);
    parts.add(one);
    parts.add(std::span(two).subspan(piece_bytes));
    EXPECT_EQ(whole, parts.xxh3());
    EXPECT_EQ(message(write, two), "");
    request_interrupt();
    EXPECT_EQ(message(hash, two), "interrupted");
    EXPECT_EQ(message(sha, two), "interrupted");
    EXPECT_EQ(message(write, two), "interrupted");
    EXPECT_FALSE(file_exists(path));
    // One piece is never stopped: threads that cannot throw hash those.
    EXPECT_EQ(message(hash, one), "");
    EXPECT_EQ(message(write, one), "");
}

TEST_F(Interrupt, can_be_asked_for) {
    EXPECT_FALSE(is_interrupted());
    request_interrupt();
    EXPECT_TRUE(is_interrupted());
    clear_interrupt();
    set_time_limit(milliseconds(5));
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_TRUE(is_interrupted());
}

TEST(interrupt_death, the_second_signal_ends_the_process) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto both = [](int first, int second) {
        handle_sigint();
        std::raise(first);
        std::raise(second);
    };
    EXPECT_EXIT(both(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
    EXPECT_EXIT(both(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "");
    EXPECT_EXIT(both(SIGTERM, SIGHUP), testing::KilledBySignal(SIGHUP), "");
}

} // namespace
} // namespace ingot
