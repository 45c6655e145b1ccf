// SPDX-License-Identifier: Apache-2.0
// Copies between layouts against a walk over all indices.
#include "base/text.h"
#include "base/thread_pool.h"
#include "ir/tensor.h"
#include "plan/copy.h"
#include "plan/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace ingot::plan {
namespace {

constexpr DType of_width[] = {DType::U8, DType::F16, DType::F32, DType::F64};
constexpr std::byte poison{0xa5};

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> out(count);
    std::generate(out.begin(), out.end(), [&] { return static_cast<std::byte>(random()); });
    return out;
}

/// Copies a tensor of this shape, dense in its own order, to `order`, and compares each element
/// and what lies before and behind.
void check_order(DType type, const Shape& shape, const Order& order, uint64_t seed) {
    auto width = static_cast<size_t>(bit_width(type) / 8);
    auto count = static_cast<size_t>(count_of(shape));
    constexpr size_t edge = 64;
    std::vector<std::byte> from = random_bytes(count * width, seed);
    std::vector<std::byte> to(count * width + 2 * edge, poison);
    Operand source{type, 0, dense(shape)};
    Operand target{type, 1, dense(shape, order)};
    ThreadPool pool(3);
    copy_elements(source, from.data(), target, to.data() + edge, pool);
    auto clean = [](std::byte b) { return b == poison; };
    EXPECT_TRUE(std::all_of(to.begin(), to.begin() + edge, clean));
    EXPECT_TRUE(std::all_of(to.end() - edge, to.end(), clean));
    Shape at(shape.size());
    for (size_t n = 0; n < count; ++n) {
        size_t rest = n;
        for (size_t i = shape.size(); i-- > 0;) {
            at[i] = static_cast<int64_t>(rest) % shape[i];
            rest /= static_cast<size_t>(shape[i]);
        }
        int64_t place =
            std::inner_product(at.begin(), at.end(), target.view.strides.begin(), int64_t{0});
        ASSERT_EQ(std::memcmp(from.data() + n * width,
                              to.data() + edge + static_cast<size_t>(place) * width, width),
                  0)
            << str(type, shape, " as ", order, ", element ", n);
    }
}

TEST(Copy, MatricesOfEveryWidthAreTransposed) {
    for (DType type : of_width) {
        for (int64_t rows : {1, 7, 16, 31, 64, 65, 130}) {
            for (int64_t columns : {1, 8, 15, 33, 64, 96, 129}) {
                check_order(type, {rows, columns}, {1, 0}, static_cast<uint64_t>(rows * columns));
            }
        }
    }
}

TEST(Copy, AxesInEveryOrder) {
    for (DType type : of_width) {
        Order order = {0, 1, 2, 3};
        do {
            check_order(type, {3, 34, 5, 67}, order, 1);
            check_order(type, {2, 70, 64, 3}, order, 2);
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

} // namespace
} // namespace ingot::plan
