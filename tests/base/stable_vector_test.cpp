// SPDX-License-Identifier: Apache-2.0
#include "base/stable_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ingot {
namespace {

TEST(StableVector, ElementsStayWhereTheyAre) {
    StableVector<std::string> v;
    v.push_back("first");
    const std::string* first = &v[0];
    for (size_t i = 1; i < 1000; ++i) {
        v.push_back(std::to_string(i));
    }
    EXPECT_EQ(v.size(), 1000U);
    EXPECT_EQ(&v[0], first);
    EXPECT_EQ(v[0], "first");
    for (size_t i = 1; i < 1000; ++i) {
        EXPECT_EQ(v[i], std::to_string(i));
    }
}

TEST(StableVector, DestroysWhatItHolds) {
    auto counted = std::make_shared<int>(0);
    {
        StableVector<std::shared_ptr<int>> v;
        for (int i = 0; i < 600; ++i) {
            v.push_back(counted);
        }
        v.resize_down(300);
        EXPECT_EQ(v.size(), 300U);
        EXPECT_EQ(counted.use_count(), 301);
        v.resize_down(400);
        EXPECT_EQ(v.size(), 300U);
        for (int i = 0; i < 300; ++i) {
            v.push_back(counted);
        }
        EXPECT_EQ(counted.use_count(), 601);
    }
    EXPECT_EQ(counted.use_count(), 1);
}

} // namespace
} // namespace ingot
