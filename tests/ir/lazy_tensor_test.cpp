// SPDX-License-Identifier: Apache-2.0
// Tensors whose bytes are made when somebody reads them.
#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "ir/lazy_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace ingot {
namespace {

std::vector<int64_t> counted(int64_t n, int64_t from) {
    std::vector<int64_t> v(static_cast<size_t>(n));
    std::iota(v.begin(), v.end(), from);
    return v;
}

Tensor numbers(DType type, const Shape& shape, int64_t from) {
    return Tensor::of<int64_t>(type, shape, counted(count_of(shape), from));
}

TEST(LazyTensor, IsMadeOnceByWhoeverReadsIt) {
    std::atomic<int> calls{0};
    Tensor t = Tensor::lazy(DType::I32, {2, 3}, [&calls](ThreadPool&) {
        ++calls;
        return numbers(DType::I32, {2, 3}, 7);
    });
    Tensor copy = t.reshaped({2, 3});
    Tensor other = t.reshaped({6});
    EXPECT_EQ(t.byte_count(), 24U);
    EXPECT_EQ(t.identity(), other.identity());
    EXPECT_EQ(t.type(), (Type{DType::I32, {2, 3}}));
    EXPECT_TRUE(t == copy); // shares them
    EXPECT_FALSE(t.writable());
    EXPECT_FALSE(t.is_made());
    EXPECT_EQ(calls, 0);
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { right += other.get_i64(5) == 12 ? 1 : 0; });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(right, 4);
    EXPECT_TRUE(copy.is_made());
    EXPECT_TRUE(copy == numbers(DType::I32, {2, 3}, 7));
    EXPECT_TRUE(copy.clone() == t);
    EXPECT_EQ(t.as<int32_t>()[1], 8);
    EXPECT_EQ(calls, 1);
}

TEST(LazyTensor, AFailureIsToldAndTheNextReadTriesAgain) {
    int calls = 0;
    Tensor t = Tensor::lazy(DType::U8, {1}, [&calls](ThreadPool&) {
        require(++calls > 1, ErrorCode::OutOfMemory, "no memory now");
        return numbers(DType::U8, {1}, 3);
    });
    EXPECT_THROW(static_cast<void>(t.bytes()), Error);
    EXPECT_FALSE(t.is_made());
    EXPECT_EQ(t.get_i64(0), 3);
    EXPECT_EQ(calls, 2);
}

/// The thread that makes them waits for the pool, whose loop reads them: none may wait for the
/// other.
TEST(LazyTensor, ALoopMakesItsOwnWhileAnotherThreadMakesThem) {
    ThreadPool pool(2);
    std::atomic<int> calls{0};
    std::atomic<bool> is_being_made{false};
    std::atomic<bool> loop_ended{false};
    Tensor t = Tensor::lazy(DType::U8, {3}, [&](ThreadPool&) {
        if (++calls == 1) {
            is_being_made = true;
            is_being_made.notify_one();
            loop_ended.wait(false);
        }
        return numbers(DType::U8, {3}, 5);
    });
    std::thread maker([&t] { EXPECT_EQ(t.get_i64(2), 7); });
    is_being_made.wait(false);
    std::atomic<int> right{0};
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            right += t.get_i64(i) == 5 + i ? 1 : 0;
        }
    });
    EXPECT_FALSE(t.is_made());
    loop_ended = true;
    loop_ended.notify_one();
    maker.join();
    EXPECT_EQ(right, 2);
    EXPECT_TRUE(t.is_made());
    EXPECT_EQ(calls, 2);
}

TEST(LazyTensor, UsesThePoolOfItsReader) {
    ThreadPool one(1);
    const ThreadPool* used = nullptr;
    Tensor t = Tensor::lazy(DType::U8, {1}, [&used](ThreadPool& pool) {
        used = &pool;
        return numbers(DType::U8, {1}, 3);
    });
    std::byte b{};
    t.read(0, {&b, 1}, one);
    EXPECT_EQ(used, &one);
    EXPECT_EQ(b, std::byte{3});
}

/// Parts of sizes {2, 5, 1} along an axis of a shape, as one tensor.
struct Example {
    std::vector<Tensor> parts;
    Tensor whole; // copied element by element
};

Example example(DType type, Shape shape, size_t axis) {
    Example e;
    Shape all = shape;
    all[axis] = 8;
    e.whole = Tensor::empty(type, all);
    int64_t start = 0;
    for (int64_t size : {2, 5, 1}) {
        shape[axis] = size;
        Tensor p = numbers(type, shape, start * 100 + 1);
        int64_t inner = strides_of(shape)[axis];
        for (int64_t i = 0; i < p.count(); ++i) {
            int64_t row = i / (size * inner);
            int64_t at = (row * 8 + start) * inner + i % (size * inner);
            e.whole.set_i64(at, p.get_i64(i));
        }
        e.parts.push_back(std::move(p));
        start += size;
    }
    return e;
}

TEST(JoinedTensor, IsReadWithoutBeingMade) {
    for (DType type : {DType::U8, DType::F16, DType::F64, DType::I4}) {
        for (size_t axis : {0, 1, 2}) {
            Shape shape = {2, 3, 2};
            if (type == DType::I4 && axis == 2) {
                continue; // rows would not begin at bytes
            }
            Example e = example(type, shape, axis);
            Tensor t = Tensor::joined(e.parts, static_cast<int64_t>(axis));
            ASSERT_EQ(t.shape(), e.whole.shape());
            ASSERT_EQ(t.byte_count(), e.whole.bytes().size());
            for (size_t begin = 0; begin <= t.byte_count(); ++begin) {
                for (size_t end = begin; end <= t.byte_count(); ++end) {
                    std::vector<std::byte> got(end - begin);
                    t.read(begin, got, ThreadPool::shared());
                    std::span<const std::byte> want = e.whole.bytes().subspan(begin, got.size());
                    ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin()))
                        << str(type, " axis ", axis, ' ', begin, ' ', end);
                }
            }
            EXPECT_FALSE(t.is_made());
            ASSERT_NE(t.unjoined(), nullptr);
            EXPECT_TRUE(t == e.whole);
            EXPECT_TRUE(t.is_made());
            EXPECT_EQ(t.unjoined(), nullptr);
        }
    }
}

TEST(JoinedTensor, ReadsOnlyThePartsItNeeds) {
    Tensor first = numbers(DType::I32, {4}, 0);
    Tensor second =
        Tensor::lazy(DType::I32, {2}, [](ThreadPool&) { return numbers(DType::I32, {2}, 4); });
    Tensor t = Tensor::joined({first, second}, 0);
    std::vector<std::byte> bytes(24);
    t.read(0, std::span(bytes).first(16), ThreadPool::shared());
    EXPECT_FALSE(second.is_made());
    t.read(16, std::span(bytes).first(4), ThreadPool::shared());
    EXPECT_TRUE(second.is_made());
    EXPECT_TRUE(t == numbers(DType::I32, {6}, 0));
}

TEST(JoinedTensor, OfJoinedOnesAndOfNothing) {
    Tensor inner =
        Tensor::joined({numbers(DType::I16, {1, 2}, 0), numbers(DType::I16, {1, 2}, 2)}, 1);
    Tensor t = Tensor::joined({inner, Tensor::empty(DType::I16, {0, 4}), inner}, 0);
    EXPECT_EQ(t.shape(), (Shape{2, 4}));
    std::vector<int16_t> got(8);
    t.read(0, std::as_writable_bytes(std::span(got)), ThreadPool::shared());
    EXPECT_EQ(got, (std::vector<int16_t>{0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_FALSE(inner.is_made());
    EXPECT_EQ(t.get_i64(6), 2);
    Tensor none =
        Tensor::joined({Tensor::empty(DType::I16, {3, 0}), Tensor::empty(DType::I16, {3, 0})}, 1);
    EXPECT_EQ(none.shape(), (Shape{3, 0}));
    EXPECT_TRUE(none.bytes().empty());
}

/// Threads copy several pieces of it.
TEST(JoinedTensor, LargeOnesAreMadeElementByElement) {
    std::vector<Tensor> parts;
    std::vector<int32_t> want(270000);
    int64_t start = 0;
    for (int64_t n : {40000, 16384, 33616}) {
        parts.push_back(numbers(DType::I32, {3, n}, start));
        for (int64_t i = 0; i < 3 * n; ++i) {
            want[static_cast<size_t>(i / n * 90000 + start + i % n)] =
                static_cast<int32_t>(start + i);
        }
        start += n;
    }
    Tensor t = Tensor::joined(parts, 1);
    ASSERT_EQ(t.shape(), (Shape{3, 90000}));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), t.as<int32_t>().begin()));
}

} // namespace
} // namespace ingot
