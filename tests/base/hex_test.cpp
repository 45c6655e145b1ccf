// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {

TEST(Hex, HasTwoDigitsAByteTheHighHalfFirst) {
    constexpr std::array bytes{std::byte{0x00}, std::byte{0x0a}, std::byte{0xb0}, std::byte{0xff}};
    EXPECT_EQ(to_hex(bytes), "000ab0ff");
    EXPECT_EQ(to_hex({}), "");
}

TEST(Hex, IsAppended) {
    std::string text = "0x";
    append_hex(text, 0x7f);
    append_hex(text, 0x01);
    EXPECT_EQ(text, "0x7f01");
}

} // namespace ingot
