// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "lower/packed_transpose.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot::plan {
namespace {

TEST(PackedTranspose, EveryElementIsInItsPlace) {
    std::mt19937 rng(1);
    std::uniform_int_distribution<int> byte(0, 255);
    // Whole tiles, several tasks, remainders in both directions, bytes that two columns share,
    // empty tensors.
    for (const Shape& shape : {Shape{16, 16}, Shape{32, 48}, Shape{64, 400}, Shape{18, 16},
                               Shape{16, 22}, Shape{50, 274}, Shape{2, 2}, Shape{17, 32},
                               Shape{32, 17}, Shape{5, 3}, Shape{1, 1}, Shape{0, 16}}) {
        for (DType type : {DType::I4, DType::U4}) {
            SCOPED_TRACE(str(type, shape));
            Tensor t = Tensor::zeros(type, shape);
            for (std::byte& b : t.mutable_bytes()) {
                b = static_cast<std::byte>(byte(rng));
            }
            if (t.count() % 2 != 0) { // behind the last element
                t.mutable_bytes().back() &= std::byte{15};
            }
            Tensor got = transposed_packed(t);
            ASSERT_EQ(got.shape(), (Shape{shape[1], shape[0]}));
            ASSERT_EQ(got.dtype(), type);
            for (int64_t r = 0; r < shape[0]; ++r) {
                for (int64_t c = 0; c < shape[1]; ++c) {
                    ASSERT_EQ(got.get_i64(c * shape[0] + r), t.get_i64(r * shape[1] + c))
                        << r << ", " << c;
                }
            }
        }
    }
}

} // namespace
} // namespace ingot::plan
